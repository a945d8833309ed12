package redistest_test

import (
	"testing"
	"time"

	"github.com/distmutex/distmutex/internal/redistest"
)

func TestClockIsSetAndMoved(t *testing.T) {
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		servers := redistest.StartClocked(t, f, 2)
		s, other := servers[0], servers[1]
		if err := s.FixedClock(); err != nil {
			t.Skip("not checked: ", err)
		}
		shows := func(s *redistest.Server, ahead time.Duration) {
			t.Helper()
			before := time.Now()
			now, err := s.Client().Time(t.Context()).Result()
			if err != nil || now.Before(before.Add(ahead-time.Second)) || now.After(time.Now().Add(ahead+time.Second)) {
				t.Errorf("it is %v ahead (%v), want %v", time.Until(now), err, ahead)
			}
		}
		shows(s, 0)
		s.SetClock(90 * time.Minute)
		s.MoveClock(-2 * time.Hour)
		s.MoveClock(-1500 * time.Millisecond)
		shows(s, -30*time.Minute-1500*time.Millisecond)
		shows(other, 0)
		if f != redistest.Miniredis {
			s.Restart()
			shows(s, -30*time.Minute-1500*time.Millisecond)
		}
		s.SetClock(0)
		shows(s, 0)
	})
}

// A key ends by the server's clock, whoever moves it.
func TestMovedClockEndsKeys(t *testing.T) {
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		s := redistest.StartClocked(t, f, 1)[0]
		if err := s.FixedClock(); err != nil {
			t.Skip("not checked: ", err)
		}
		c := s.Client()
		for by, want := range map[time.Duration]string{-time.Hour: "v", time.Hour: ""} {
			if err := c.Set(t.Context(), "k", "v", 30*time.Minute).Err(); err != nil {
				t.Fatal(err)
			}
			s.MoveClock(by)
			if got := get(t, c, "k"); got != want {
				t.Errorf("after a move by %v: got %q, want %q", by, got, want)
			}
			s.MoveClock(-by)
		}
	})
}
