package mutex_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/mutex"
)

func cycle(b *testing.B, ctx context.Context, m *mutex.Leased) {
	if err := m.Lock(ctx); err != nil {
		b.Error(err)
	}
	if err := m.Unlock(ctx); err != nil {
		b.Error(err)
	}
}

func BenchmarkLockUnlock(b *testing.B) {
	m, err := mutex.New(memory.New(nil), "k", nil)
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		cycle(b, ctx, m)
	}
}

func BenchmarkLockUnlockManyKeys(b *testing.B) {
	s, err := mutex.NewSession(memory.New(nil), nil)
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	var n atomic.Int64
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		m := s.Mutex(fmt.Sprint(n.Add(1)))
		for pb.Next() {
			cycle(b, ctx, m)
		}
	})
}

// BenchmarkHandOver passes one lock between many goroutines of one session.
func BenchmarkHandOver(b *testing.B) {
	m, err := mutex.New(memory.New(nil), "k", nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			cycle(b, b.Context(), m)
		}
	})
}
