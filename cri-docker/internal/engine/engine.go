// Package engine calls the Docker Engine. Every call has a deadline, except those that stream.
package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"
)

const (
	quick = 2 * time.Minute // Docker answers in milliseconds; a loaded disk delays it
	// killing is what Docker may need after the grace period of a container.
	killing = time.Minute
)

// Engine is a connection to one Docker Engine. It is safe for concurrent use.
type Engine struct{ api *client.Client }

// New prepares a connection to the address, such as unix:///run/docker.sock. It does not connect.
func New(address string) (*Engine, error) {
	api, err := client.New(client.WithHost(address), client.WithUserAgent("swiftlet-cri-docker"))
	if err != nil {
		return nil, fmt.Errorf("prepare client of Docker at %s: %w", address, err)
	}
	return &Engine{api: api}, nil
}

// Close closes idle connections.
func (e *Engine) Close() error { return e.api.Close() }

// Version returns the engine's version.
func (e *Engine) Version(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, quick)
	defer cancel()
	v, err := e.api.ServerVersion(ctx, client.ServerVersionOptions{})
	if err != nil {
		return "", fmt.Errorf("read version of Docker: %w", err)
	}
	return v.Version, nil
}

// Info returns the engine's settings and abilities.
func (e *Engine) Info(ctx context.Context) (system.Info, error) {
	ctx, cancel := context.WithTimeout(ctx, quick)
	defer cancel()
	result, err := e.api.Info(ctx, client.InfoOptions{})
	if err != nil {
		return system.Info{}, fmt.Errorf("read info of Docker: %w", err)
	}
	return result.Info, nil
}
