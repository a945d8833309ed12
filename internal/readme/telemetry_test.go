package readme_test

import (
	"context"
	"testing"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/mutex"
	"github.com/distmutex/distmutex/telemetry"
)

func measured(ctx context.Context, b backend.Backend) error {
	tel, err := telemetry.New(nil) // OpenTelemetry's global providers
	if err != nil {
		return err
	}
	m, err := mutex.New(backend.Wrap(b, tel.Middleware, telemetry.Log(nil)), "report", nil)
	if err != nil {
		return err
	}
	return m.Do(ctx, func(context.Context) error { return nil })
}

func TestMeasured(t *testing.T) {
	if err := measured(t.Context(), memory.New(nil)); err != nil {
		t.Error(err)
	}
}
