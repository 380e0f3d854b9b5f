package cri

import (
	"context"
	"errors"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ExecResult is the output and exit code of a command in a container.
type ExecResult struct {
	Stdout, Stderr []byte
	ExitCode       int32
}

// ExecSync runs a command and waits for it. A non-zero exit code is not an error; a command
// that exceeds its timeout is one for which IsTimeout is true, unless the runtime answers no other
// call either: then the container may be well. Without a timeout only ctx ends the wait.
func (c *Client) ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) (ExecResult, error) {
	bounded, began, limit := ctx, c.clock.Now(), timeout+c.margin
	if timeout > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	response, err := c.runtime.ExecSync(bounded, &runtimeapi.ExecSyncRequest{
		ContainerId: id, Cmd: command, Timeout: wholeSeconds(timeout),
	}, c.execOptions...)
	// Not bounded.Err: the runtime's side of the connection may end the call a moment before.
	if err != nil && timeout > 0 && c.clock.Since(began) >= limit && ctx.Err() == nil && !c.responds(ctx) {
		err = errNoResponse
	}
	if err != nil {
		return ExecResult{}, failed(err, "exec in container "+id)
	}
	return ExecResult{Stdout: response.Stdout, Stderr: response.Stderr, ExitCode: response.ExitCode}, nil
}

// errNoResponse is for a command of which nothing is known, as the runtime hangs.
var errNoResponse = errors.New("the runtime does not respond")

func (c *Client) responds(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, respondTimeout)
	defer cancel()
	_, err := c.Version(ctx)
	return err == nil
}

// wholeSeconds rounds up: zero means no timeout to the runtime.
func wholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// Exec prepares a streaming exec and returns the URL that serves it.
func (c *Client) Exec(ctx context.Context, request *runtimeapi.ExecRequest) (string, error) {
	ctx, cancel := c.withTimeout(ctx, 0)
	defer cancel()
	response, err := c.runtime.Exec(ctx, request)
	return streamURL(response, err, "prepare exec in container "+request.ContainerId)
}

// Attach prepares a stream to the container's own process and returns its URL.
func (c *Client) Attach(ctx context.Context, request *runtimeapi.AttachRequest) (string, error) {
	ctx, cancel := c.withTimeout(ctx, 0)
	defer cancel()
	response, err := c.runtime.Attach(ctx, request)
	return streamURL(response, err, "prepare attach to container "+request.ContainerId)
}

// PortForward prepares a stream to the sandbox's ports and returns its URL.
func (c *Client) PortForward(ctx context.Context, request *runtimeapi.PortForwardRequest) (string, error) {
	ctx, cancel := c.withTimeout(ctx, 0)
	defer cancel()
	response, err := c.runtime.PortForward(ctx, request)
	return streamURL(response, err, "prepare port forward to sandbox "+request.PodSandboxId)
}

func streamURL(response interface{ GetUrl() string }, err error, op string) (string, error) {
	if err != nil {
		return "", failed(err, op)
	}
	if response.GetUrl() == "" {
		return "", failed(errEmptyResponse, op)
	}
	return response.GetUrl(), nil
}
