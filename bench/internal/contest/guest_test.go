package contest

import (
	"context"
	"os"
	"path/filepath"
	"time"
)

// folders is a guest whose lock is a folder that can be made once.
var folders = Guest{
	Name:  "folders",
	Start: func(dir string) (string, func() error, error) { return dir, func() error { return nil }, nil },
	Open:  func(addr string, _ time.Duration) (Client, error) { return folder(addr), nil },
}

type folder string

func (f folder) Mutex(string) Lock { return folder(filepath.Join(string(f), "lock")) }
func (f folder) Close()            {}
func (f folder) Unlock() error     { return os.Remove(string(f)) }
func (f folder) Token() int64      { return 0 }

func (f folder) Lock(ctx context.Context) error {
	for {
		if err := os.Mkdir(string(f), 0o700); !os.IsExist(err) {
			return err
		}
		if !sleep(ctx, time.Millisecond) {
			return ctx.Err()
		}
	}
}
