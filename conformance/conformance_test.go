package conformance_test

import (
	"testing"
	"testing/synctest"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/conformance"
)

func newMemory(testing.TB) backend.Backend { return memory.New(nil) }

func TestMemory(t *testing.T) {
	conformance.Run(t, conformance.Harness{New: newMemory})
}

func TestMemoryInBubbles(t *testing.T) {
	conformance.Run(t, conformance.Harness{New: newMemory, Around: synctest.Test})
}
