package redistest

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// CA is a certificate authority of one test, and one certificate of it, for
// localhost and 127.0.0.1.
type CA struct {
	Pool *x509.CertPool
	File string // the authority's certificate in PEM

	cert, key string // the server's, in PEM
}

// NewCA makes an authority that nobody trusts.
func NewCA(tb testing.TB) *CA {
	tb.Helper()
	dir := tb.TempDir()
	ca := &CA{Pool: x509.NewCertPool(), File: filepath.Join(dir, "ca"), cert: filepath.Join(dir, "cert"), key: filepath.Join(dir, "key")}
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a test's authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "a test's server"},
		NotBefore: root.NotBefore, NotAfter: root.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:    []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	rootKey, leafKey := newKey(tb), newKey(tb)
	signed := sign(tb, root, root, rootKey, rootKey)
	write(tb, ca.File, "CERTIFICATE", signed)
	write(tb, ca.cert, "CERTIFICATE", sign(tb, leaf, root, leafKey, rootKey))
	der, err := x509.MarshalPKCS8PrivateKey(leafKey)
	if err != nil {
		tb.Fatal(err)
	}
	write(tb, ca.key, "PRIVATE KEY", der)
	parsed, err := x509.ParseCertificate(signed)
	if err != nil {
		tb.Fatal(err)
	}
	ca.Pool.AddCert(parsed)
	return ca
}

func newKey(tb testing.TB) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func sign(tb testing.TB, of, by *x509.Certificate, key, byKey *ecdsa.PrivateKey) []byte {
	der, err := x509.CreateCertificate(rand.Reader, of, by, &key.PublicKey, byKey)
	if err != nil {
		tb.Fatal(err)
	}
	return der
}

func write(tb testing.TB, file, kind string, der []byte) {
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// StartTLS starts a server with a certificate of ca. Its Addr is without TLS, for
// the test's own use; port is the one with TLS, at localhost and 127.0.0.1. It
// skips the test where the server was built without TLS.
func StartTLS(tb testing.TB, f Flavour, ca *CA, args ...string) (s *Server, port string) {
	tb.Helper()
	NeedsControl(tb, f)
	needsTLS(tb, f)
	tlsArgs, port := ca.args(tb)
	bus := hold(tb) // by itself it is 10000 above the port, where outgoing connections are
	return Start(tb, f, 1, slices.Concat(tlsArgs, []string{"--cluster-port", bus}, args)...)[0], port
}

// StartTLSSentinel starts a sentinel that watches a primary at a port with TLS,
// and answers at another.
func StartTLSSentinel(tb testing.TB, f Flavour, ca *CA, primary string) (port string) {
	tb.Helper()
	NeedsControl(tb, f)
	args, port := ca.args(tb)
	startSentinels(tb, f, 1, fmt.Sprintf("sentinel monitor %s 127.0.0.1 %s 1\n", Watched, primary), append(args, "--tls-replication", "yes")...)
	return port
}

// hold reserves a port until the test ends.
func hold(tb testing.TB) string {
	tb.Helper()
	number, err := reserve()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { number.Close() })
	return strconv.Itoa(number.LocalAddr().(*net.UDPAddr).Port)
}

func (ca *CA) args(tb testing.TB) (args []string, port string) {
	tb.Helper()
	port = hold(tb)
	return []string{
		"--tls-cert-file", ca.cert, "--tls-key-file", ca.key, "--tls-ca-cert-file", ca.File,
		"--tls-auth-clients", "no", "--tls-port", port,
	}, port
}

// needsTLS skips the test where the server was built without TLS. One that is
// told to listen nowhere ends at once, and says why.
func needsTLS(tb testing.TB, f Flavour) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startBound)
	defer cancel()
	out, _ := exec.CommandContext(ctx, found().bins[f], "--port", "0", "--tls-port", "0").CombinedOutput()
	if bytes.Contains(out, []byte("Bad directive")) {
		tb.Skipf("not checked: %s was built without TLS", f)
	}
}
