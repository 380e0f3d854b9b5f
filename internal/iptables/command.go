package iptables

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

var (
	// errNo is iptables' answer to a question, or that it cannot do what it was asked to.
	errNo = errors.New("no")
	// errBusy is that it could not even try: somebody else holds its lock.
	errBusy = errors.New("busy")
)

// patience is how many seconds iptables may wait for others who change the tables.
const patience = "5"

// longest ends an iptables that hangs.
const longest = time.Minute

// run calls iptables. A failure says what it said.
func (f *family) run(ctx context.Context, args ...string) error {
	ctx, stop := context.WithTimeout(ctx, longest)
	defer stop()
	cmd := exec.CommandContext(ctx, f.program, append([]string{"-w", patience}, args...)...)
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	said := strings.Join(strings.Fields(string(out)), " ")
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		switch exit.ExitCode() {
		case 1:
			return fmt.Errorf("%s: %w (%s)", f.program, errNo, said)
		case 4:
			return fmt.Errorf("%s: %w (%s)", f.program, errBusy, said)
		}
	}
	return fmt.Errorf("%s %s: %w (%s)", f.program, strings.Join(args, " "), err, said)
}

// present reports whether this kind of iptables works here.
func (f *family) present(ctx context.Context) bool {
	return f.run(ctx, "-S", "POSTROUTING", "-t", "nat") == nil
}

// notifies reports whether the kernel tells when somebody changes this iptables' tables.
func (f *family) notifies(ctx context.Context) bool {
	ctx, stop := context.WithTimeout(ctx, longest)
	defer stop()
	out, err := exec.CommandContext(ctx, f.program, "--version").Output()
	return err == nil && bytes.Contains(out, []byte("(nf_tables)"))
}
