package table_test

import (
	"testing"
	"testing/synctest"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/conformance"
	"github.com/distmutex/distmutex/internal/readme/table"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Harness{
		New:    func(testing.TB) backend.Backend { return table.New() },
		Around: synctest.Test, // only what needs no network runs in a bubble
	})
}
