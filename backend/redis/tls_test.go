package redis_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

func TestTLSOfAClientOfOnesOwn(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		ca, other := redistest.NewCA(t), redistest.NewCA(t)
		_, port := redistest.StartTLS(t, f, ca)
		with := func(c *tls.Config) *redis.Backend {
			o := &redis.Options{Unordered: true, Logger: slog.New(slog.DiscardHandler)}
			return overWith(t, goredis.NewClient(&goredis.Options{Addr: "localhost:" + port, TLSConfig: c, MaxRetries: -1, DialerRetries: 1}), o)
		}
		good := with(&tls.Config{RootCAs: ca.Pool})
		held := mustAcquire(t, good, lease("k", 20*time.Second))
		if err := good.Renew(t.Context(), held); err != nil {
			t.Error(err)
		}
		waits := waiting(t, good, t.Context(), "k")
		eventually(t, "the waiter listens", func() bool { return good.Hears("k") })
		mustRelease(t, good, held)
		if err := <-waits; err != nil {
			t.Errorf("wait: %v", err)
		}
		for what, c := range map[string]*tls.Config{
			"another authority": {RootCAs: other.Pool},
			"no authority":      {RootCAs: x509.NewCertPool()},
			"another name":      {RootCAs: ca.Pool, ServerName: "example.com"},
		} {
			for op, call := range verbs(with(c), lease("k", time.Second)) {
				var e *tls.CertificateVerificationError
				if err := call(t.Context()); !errors.As(err, &e) {
					t.Errorf("%s: %s: got %v, want that the certificate is refused", what, op, err)
				}
			}
		}
	})
}

// Open trusts the system's authorities. So the program runs again in a process
// that has another authority for the system's.
func TestOpenVerifiesCertificates(t *testing.T) {
	if u := os.Getenv("REDIS_TEST_TLS_URL"); u != "" {
		b, err := open(t, nil, u)
		if err != nil {
			t.Fatal(err)
		}
		mustRelease(t, b, mustAcquire(t, b, lease("k", time.Second)))
		return
	}
	if runtime.GOOS != "linux" {
		t.Skip("not checked: SSL_CERT_FILE names the system's authorities on Linux only")
	}
	t.Parallel()
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		ca := redistest.NewCA(t)
		s, port := redistest.StartTLS(t, f, ca, "--requirepass", "p@ss")
		u := "rediss://:p%40ss@localhost:" + port
		opensInAProcess(t, ca, u)

		o := &redis.Options{Logger: slog.New(slog.DiscardHandler)}
		for _, u := range []string{u, u + "?dial_timeout=2s", strings.Replace(u, "rediss", "rediss+cluster", 1), "rediss+sentinel://:p%40ss@localhost:" + port + "/locks"} {
			var e *tls.CertificateVerificationError
			if _, err := open(t, o, u); !errors.As(err, &e) || strings.Contains(err.Error(), "p@ss") {
				t.Errorf("%s: got %v, want that the certificate is refused", s.Flavour, err)
			}
		}
		cluster, port := redistest.StartTLS(t, f, ca, "--cluster-enabled", "yes", "--tls-cluster", "yes", "--cluster-announce-ip", "127.0.0.1")
		if err := cluster.Client().ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the cluster is up", func() bool {
			return strings.Contains(cluster.Client().ClusterInfo(t.Context()).Val(), "cluster_state:ok")
		})
		opensInAProcess(t, ca, "rediss+cluster://localhost:"+port)
		_, port = redistest.StartTLS(t, f, ca)
		opensInAProcess(t, ca, "rediss+sentinel://localhost:"+redistest.StartTLSSentinel(t, f, ca, port)+"/"+redistest.Watched)
	})
}

func opensInAProcess(t *testing.T, ca *redistest.CA, u string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOpenVerifiesCertificates$")
	cmd.Env = append(os.Environ(), "REDIS_TEST_TLS_URL="+u, "SSL_CERT_FILE="+ca.File)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", u, err, out)
	}
}
