package main

import (
	"context"
	"fmt"
	"log"

	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/mutex"
)

func main() {
	ctx := context.Background()
	m, err := mutex.New(memory.New(nil), "report", nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := m.Lock(ctx); err != nil {
		log.Fatal(err)
	}
	defer m.Unlock(ctx)
	fmt.Println("the report is ours, with token", m.Current().Token())
}
