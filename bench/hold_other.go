//go:build !linux

package main

import "time"

func hold(d time.Duration) { time.Sleep(d) }
