package machine_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/distmutex/distmutex/chaos/internal/machine"
)

const childEnv = "DISTMUTEX_MACHINE_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		child()
		return
	}
	os.Exit(m.Run())
}

// child prints, for each line that it reads, how far three clocks have gone on
// since the last: the monotonic one, the wall clock and CLOCK_BOOTTIME. Then it
// sleeps, and prints whether it slept for that time by its own clock.
func child() {
	if os.Getenv(childEnv) == busy {
		go func() {
			for {
				runtime.GC() // which stops all goroutines, over and over
			}
		}()
	}
	if err := machine.Enter(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	in := bufio.NewScanner(os.Stdin)
	last, boot := time.Now(), machine.Read(unix.CLOCK_BOOTTIME)
	for in.Scan() {
		now, b := time.Now(), machine.Read(unix.CLOCK_BOOTTIME)
		fmt.Println(int64(now.Sub(last)), int64(now.Round(0).Sub(last.Round(0))), b-boot)
		last, boot = now, b
		time.Sleep(nap)
		fmt.Println(int64(time.Since(now)))
	}
}

const (
	calm = "calm" // what a child is
	busy = "busy"
)

const nap = 400 * time.Millisecond

// process is a child and what it says.
type process struct {
	*machine.Machine
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(t *testing.T, how string) *process {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+how)
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: cmd, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	var err error
	if p.Machine, err = machine.Adopt(cmd.Process.Pid); err != nil {
		t.Skipf("not checked: this system suspends no process: %v", err)
	}
	return p
}

// hear reads a line of durations.
func (p *process) hear(into ...any) {
	p.t.Helper()
	line, err := p.out.ReadString('\n')
	if _, scan := fmt.Sscan(line, into...); err != nil || scan != nil {
		p.t.Fatalf("%q: %v, %v", line, err, scan)
	}
}

func (p *process) asleep(d time.Duration) {
	p.t.Helper()
	if err := p.Suspend(); err != nil || !p.Asleep() {
		p.t.Fatal("suspend: ", err)
	}
	time.Sleep(d)
	if err := p.Resume(); err != nil || p.Asleep() {
		p.t.Fatal("resume: ", err)
	}
}

// The monotonic clock loses what the machine slept, and so do timers; the others
// do not.
func TestMonotonicClockStandsStillInASleep(t *testing.T) {
	p := start(t, calm)
	var mono, wall, boot, napped int64
	ask := func() { fmt.Fprintln(p.in); p.hear(&mono, &wall, &boot) }
	ask()
	p.hear(&napped)
	begun := time.Now()
	p.asleep(2 * time.Second)
	p.asleep(time.Second)
	ask()
	slept := 3 * time.Second
	for name, d := range map[string]int64{"wall": wall, "boot": boot} {
		if lost := time.Duration(d - mono); lost < slept || lost > slept+time.Since(begun)/2 {
			t.Errorf("the %s clock gained %v, slept %v", name, lost, slept)
		}
	}
	begun = time.Now()
	p.asleep(time.Second) // in the nap
	if p.hear(&napped); time.Duration(napped) < nap || time.Since(begun) < time.Second+nap/2 {
		t.Errorf("it slept for %v by its clock, and %v of ours", time.Duration(napped), time.Since(begun))
	}
}

func TestProcessThatIsKilledInItsSleep(t *testing.T) {
	p := start(t, calm)
	if err := p.Suspend(); err != nil {
		t.Fatal(err)
	}
	p.cmd.Process.Kill()
	p.cmd.Wait()
	<-p.Gone()
	if err := p.Resume(); !errors.Is(err, unix.ESRCH) {
		t.Errorf("resume: %v, want %v", err, unix.ESRCH)
	}
	if err := p.Suspend(); !errors.Is(err, unix.ESRCH) {
		t.Errorf("suspend: %v, want %v", err, unix.ESRCH)
	}
}

func TestNoProcessIsAdopted(t *testing.T) {
	cmd := exec.Command("cat") // it ends without having entered
	in, err1 := cmd.StdinPipe()
	if err := errors.Join(err1, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { in.Close() })
	if _, err := machine.Adopt(cmd.Process.Pid); !errors.Is(err, unix.ESRCH) {
		t.Errorf("adopt: %v, want %v", err, unix.ESRCH)
	}
	cmd.Wait()
	if _, err := machine.Adopt(cmd.Process.Pid); !errors.Is(err, unix.ESRCH) {
		t.Errorf("adopt what has ended: %v, want %v", err, unix.ESRCH)
	}
}

// However busy a process is when it enters, it goes on.
func TestBusyProcessIsAdopted(t *testing.T) {
	for range 20 {
		p := start(t, busy)
		var mono, wall, boot int64
		fmt.Fprintln(p.in)
		p.hear(&mono, &wall, &boot)
		p.cmd.Process.Kill()
		p.cmd.Wait()
		<-p.Gone()
	}
}
