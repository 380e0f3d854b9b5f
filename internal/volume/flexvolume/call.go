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
)

// callTimeout bounds one call of a driver.
const callTimeout = 2 * time.Minute

// killWait is how long a driver that was ended may leave its output open to children.
const killWait = 5 * time.Second

// errNotSupported says that the driver leaves the step to us.
var errNotSupported = errors.New("not supported")

// What a driver's status may say, anything else being a failure.
const (
	statusSuccess      = "Success"
	statusNotSupported = "Not supported"
)

// answer is what a driver says on its standard output.
type answer struct {
	Status       string        `json:"status"`
	Message      string        `json:"message"`
	Device       string        `json:"device"`
	Capabilities *capabilities `json:"capabilities"`
}

// capabilities are what a driver can do. What it does not mention it has the default of.
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

// call runs the driver. Once begun it is not ended by a pod that goes: a driver stopped half
// way leaves something that only it could take away.
func (d *driver) call(ctx context.Context, command string, args ...string) (answer, error) {
	if _, err := d.ready(ctx); err != nil {
		return answer{}, err
	}
	d.mu.Lock()
	declined := d.declined[command]
	d.mu.Unlock()
	if declined {
		return answer{}, errNotSupported
	}
	said, err := d.run(ctx, command, args...)
	if errors.Is(err, errNotSupported) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.declined[command] = true
	}
	return said, err
}

func (d *driver) run(ctx context.Context, command string, args ...string) (answer, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, d.program(d.name), append([]string{command}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// Most drivers are scripts: what they started ends with them.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killWait
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return answer{}, fmt.Errorf("FlexVolume driver %s did not answer %s within %v", d.name, command, callTimeout)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return answer{}, fmt.Errorf("run FlexVolume driver %s: %w", d.name, err)
	}
	said, sayErr := read(command, out)
	if sayErr == nil && err != nil {
		return answer{}, fmt.Errorf("FlexVolume driver %s: %s ended with %w though it answered %s", d.name, command, err, said.Status)
	}
	return said, sayErr
}

// read takes apart what a driver wrote.
func read(command string, out []byte) (answer, error) {
	said := answer{Capabilities: defaults()}
	if err := json.Unmarshal(out, &said); err != nil {
		return answer{}, fmt.Errorf("read the FlexVolume driver's answer to %s, %.200q: %w", command, out, err)
	}
	if said.Capabilities == nil { // it said null
		said.Capabilities = defaults()
	}
	switch said.Status {
	case statusSuccess:
		return said, nil
	case statusNotSupported:
		return answer{}, errNotSupported
	}
	return answer{}, fmt.Errorf("%s command failed, status: %s, reason: %s", command, said.Status, said.Message)
}

// ready asks the driver, once for each form of its program, what it can do.
func (d *driver) ready(ctx context.Context) (capabilities, error) {
	path := d.program(d.name)
	info, err := os.Stat(path)
	if err != nil {
		return capabilities{}, d.MissingError(d.name)
	}
	d.mu.Lock()
	known := d.seen != nil && os.SameFile(d.seen, info) && d.seen.ModTime().Equal(info.ModTime()) && d.seen.Size() == info.Size()
	able := d.able
	d.mu.Unlock()
	if known {
		return able, nil
	}
	said, err := d.run(ctx, "init")
	if err != nil {
		return capabilities{}, fmt.Errorf("start FlexVolume driver %s: %w", d.name, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen, d.able, d.declined = info, *said.Capabilities, map[string]bool{}
	return d.able, nil
}
