package main

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// serverEnv is set in a process that is a server: the folder of its data. hasteEnv
// is set beside it if it is not to wait for the disk.
const (
	serverEnv = "DISTMUTEX_BENCH_ETCD"
	hasteEnv  = "DISTMUTEX_BENCH_ETCD_HASTE"
)

// start makes the function that starts a server in a process of its own.
func start(haste string) func(dir string) (string, func() error, error) {
	return func(dir string) (string, func() error, error) {
		self, err := os.Executable()
		if err != nil {
			return "", nil, err
		}
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), serverEnv+"="+dir, hasteEnv+"="+haste)
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe() // it ends with this process
		if err != nil {
			return "", nil, err
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return "", nil, err
		}
		if err := cmd.Start(); err != nil {
			return "", nil, err
		}
		stop := func() error { return errors.Join(in.Close(), cmd.Wait()) }
		var addr string
		if _, err := fmt.Fscanln(out, &addr); err != nil {
			return "", nil, errors.Join(err, stop())
		}
		return addr, stop, nil
	}
}

// serve says where it listens, and serves until its input ends.
func serve(dir string) error {
	c := embed.NewConfig()
	c.Dir, c.UnsafeNoFsync = filepath.Join(dir, "data"), os.Getenv(hasteEnv) != ""
	c.LogLevel = "panic" // what is wrong is returned, but that a listener was closed is not wrong

	any := url.URL{Scheme: "http", Host: "127.0.0.1:0"} // clients are told the port that it gets
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{any}, []url.URL{any}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{any}, []url.URL{any}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	e, err := embed.StartEtcd(c)
	if err != nil {
		return err
	}
	defer e.Close()
	select {
	case <-e.Server.ReadyNotify():
	case err := <-e.Err():
		return err
	case <-time.After(time.Minute):
		return errors.New("it was not ready within a minute")
	}
	fmt.Println(e.Clients[0].Addr())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
