package flexvolume

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"swiftlet/internal/boundedio"
	"swiftlet/internal/clip"
)

// callTimeout bounds one call of a driver.
const callTimeout = 2 * time.Minute

// killWait is how long to wait for the output after a driver was killed.
const killWait = 5 * time.Second

// errNotSupported means that the driver leaves the operation to the kubelet.
var errNotSupported = errors.New("not supported")

// Values of a driver's status; any other is a failure.
const (
	statusSuccess      = "Success"
	statusNotSupported = "Not supported"
)

// response is the output of a driver.
type response struct {
	Status       string        `json:"status"`
	Message      string        `json:"message"`
	Device       string        `json:"device"`
	Capabilities *capabilities `json:"capabilities"`
}

// capabilities are those of a driver. Missing ones have their default.
type capabilities struct {
	Attach           bool `json:"attach"`
	SELinuxRelabel   bool `json:"selinuxRelabel"`
	SupportsMetrics  bool `json:"supportsMetrics"`
	FSGroup          bool `json:"fsGroup"`
	RequiresFSResize bool `json:"requiresFSResize"`
}

func defaults() *capabilities {
	return &capabilities{Attach: true, SELinuxRelabel: true, FSGroup: true, RequiresFSResize: true}
}

// call runs the driver. The end of ctx does not interrupt it: a driver that is interrupted leaves
// state that only the driver can clean up.
func (d *driver) call(ctx context.Context, command string, args ...string) (response, error) {
	if _, err := d.initialize(ctx); err != nil {
		return response{}, err
	}
	d.mu.Lock()
	unsupported := d.unsupported[command]
	d.mu.Unlock()
	if unsupported {
		return response{}, errNotSupported
	}
	resp, err := d.run(ctx, command, args...)
	if errors.Is(err, errNotSupported) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.unsupported[command] = true
	}
	return resp, err
}

func (d *driver) run(ctx context.Context, command string, args ...string) (response, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, d.program(d.name), append([]string{command}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// Most drivers are scripts: kill their child processes, too.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killWait
	out, err := boundedio.CombinedOutput(cmd, boundedio.Small)
	if ctx.Err() != nil {
		return response{}, fmt.Errorf("FlexVolume driver %s: %s timed out after %v", d.name, command, callTimeout)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return response{}, fmt.Errorf("run FlexVolume driver %s: %w", d.name, err)
	}
	resp, respErr := parse(command, out)
	if respErr == nil && err != nil {
		return response{}, fmt.Errorf("FlexVolume driver %s: %s ended with %w though its status is %s", d.name, command, err, resp.Status)
	}
	return resp, respErr
}

// parse parses the output of a driver.
func parse(command string, out []byte) (response, error) {
	resp := response{Capabilities: defaults()}
	if err := json.Unmarshal(out, &resp); err != nil {
		return response{}, fmt.Errorf("parse output of FlexVolume driver for %s, %.200q: %w", command, out, err)
	}
	if resp.Capabilities == nil { // null in the output
		resp.Capabilities = defaults()
	}
	switch resp.Status {
	case statusSuccess:
		return resp, nil
	case statusNotSupported:
		return response{}, errNotSupported
	}
	return response{}, fmt.Errorf("%s command failed, status: %s, reason: %s", command, clip.Text(resp.Status, clip.Name), clip.Text(resp.Message, clip.Message))
}

// initialize runs init once for each version of the driver's program, and returns the capabilities.
func (d *driver) initialize(ctx context.Context) (capabilities, error) {
	path := d.program(d.name)
	info, err := os.Stat(path)
	if err != nil {
		return capabilities{}, d.MissingError(d.name)
	}
	d.mu.Lock()
	known := d.initialized != nil && os.SameFile(d.initialized, info) && d.initialized.ModTime().Equal(info.ModTime()) && d.initialized.Size() == info.Size()
	caps := d.caps
	d.mu.Unlock()
	if known {
		return caps, nil
	}
	resp, err := d.run(ctx, "init")
	if err != nil {
		return capabilities{}, fmt.Errorf("start FlexVolume driver %s: %w", d.name, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.initialized, d.caps, d.unsupported = info, *resp.Capabilities, map[string]bool{}
	return d.caps, nil
}
