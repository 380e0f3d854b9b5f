package standalone

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestHungPacketFilterEndsWithContext: up stops although nft or iptables, or a child of them, does not return.
func TestHungPacketFilterEndsWithContext(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"nft", "iptables"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nsleep 60\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	cfg := Config{API: &APIConfig{Port: 6443}}
	for name, call := range map[string]func(context.Context) error{
		"block loopback by nftables":   func(ctx context.Context) error { return blockLocalnet(ctx, backendNftables) },
		"block loopback by iptables":   func(ctx context.Context) error { return blockLocalnet(ctx, backendIptables) },
		"route to the API by nftables": func(ctx context.Context) error { return routeAPI(ctx, cfg, backendNftables) },
		"rule of the API by iptables":  func(ctx context.Context) error { return routeAPI(ctx, cfg, backendIptables) },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- call(ctx) }()
			select {
			case err := <-ended:
				if err == nil {
					t.Error("no error")
				}
			case <-time.After(20 * time.Second):
				t.Error("the call does not end with its context")
			}
		})
	}
}
