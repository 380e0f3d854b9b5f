package engine

import (
	"context"
	"fmt"

	"github.com/moby/moby/client"
)

// detachKeys replace Docker's default, which withholds each Ctrl-P of a terminal until the next key.
const detachKeys = "ctrl-@,ctrl-^,ctrl-@,ctrl-_"

// Exec prepares a command in a container and returns its ID.
func (e *Engine) Exec(ctx context.Context, container string, o client.ExecCreateOptions) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, quick)
	defer cancel()
	o.DetachKeys = detachKeys
	result, err := e.api.ExecCreate(ctx, container, o)
	if err != nil {
		return "", fmt.Errorf("create exec in container %s: %w", container, err)
	}
	return result.ID, nil
}

// StartExec starts the command and returns its streams, which the caller closes.
func (e *Engine) StartExec(ctx context.Context, id string, tty bool) (client.HijackedResponse, error) {
	result, err := e.api.ExecAttach(ctx, id, client.ExecAttachOptions{TTY: tty})
	if err != nil {
		return client.HijackedResponse{}, fmt.Errorf("start exec %s: %w", id, err)
	}
	return result.HijackedResponse, nil
}

// InspectExec returns the state of the command.
func (e *Engine) InspectExec(ctx context.Context, id string) (client.ExecInspectResult, error) {
	ctx, cancel := context.WithTimeout(ctx, quick)
	defer cancel()
	result, err := e.api.ExecInspect(ctx, id, client.ExecInspectOptions{})
	if err != nil {
		return result, fmt.Errorf("inspect exec %s: %w", id, err)
	}
	return result, nil
}

// ResizeExec sets the size of the command's terminal.
func (e *Engine) ResizeExec(ctx context.Context, id string, height, width uint) error {
	ctx, cancel := context.WithTimeout(ctx, quick)
	defer cancel()
	_, err := e.api.ExecResize(ctx, id, client.ExecResizeOptions{Height: height, Width: width})
	return err
}

// Attach connects to the streams of a container's first process. The caller closes them.
func (e *Engine) Attach(ctx context.Context, id string, stdin, stdout, stderr bool) (client.HijackedResponse, error) {
	result, err := e.api.ContainerAttach(ctx, id, client.ContainerAttachOptions{
		Stream: true, Stdin: stdin, Stdout: stdout, Stderr: stderr, DetachKeys: detachKeys})
	if err != nil {
		return client.HijackedResponse{}, fmt.Errorf("attach to container %s: %w", id, err)
	}
	return result.HijackedResponse, nil
}

// Resize sets the size of a container's terminal.
func (e *Engine) Resize(ctx context.Context, id string, height, width uint) error {
	ctx, cancel := context.WithTimeout(ctx, quick)
	defer cancel()
	_, err := e.api.ContainerResize(ctx, id, client.ContainerResizeOptions{Height: height, Width: width})
	return err
}
