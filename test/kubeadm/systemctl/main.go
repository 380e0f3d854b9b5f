// Command systemctl stands in for systemd's on a machine without systemd. It knows the commands
// that kubeadm and README.md use, for services whose units have the options of the kubelet's.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: systemctl COMMAND [SERVICE]")
		os.Exit(2)
	}
	name := ""
	if len(os.Args) > 2 {
		name = strings.TrimSuffix(os.Args[2], ".service")
	}
	code, err := run(os.Stdout, os.Args[1], name)
	if err != nil {
		fmt.Fprintln(os.Stderr, "systemctl:", err)
		code = 1
	}
	os.Exit(code)
}

// run returns the exit status, which for the state of a service is that of systemd's systemctl.
func run(out io.Writer, command, name string) (int, error) {
	switch command {
	case "daemon-reload": // units are read at every start
		return 0, nil
	case "start":
		return 0, start(name)
	case "stop":
		return 0, stop(name)
	case "restart":
		return 0, errors.Join(stop(name), start(name))
	case "status", "is-enabled", "is-active":
		return report(out, command, name)
	case superviseCommand:
		return 0, supervise(name)
	}
	return 0, fmt.Errorf("unknown command %q", command)
}

func report(out io.Writer, command, name string) (int, error) {
	if _, err := loadService("/", name); errors.Is(err, os.ErrNotExist) {
		fmt.Fprintf(out, "Unit %s.service could not be found.\n", name)
		return 4, nil
	} else if err != nil {
		return 0, err
	}
	state, code := "inactive", 3
	if running, err := supervised(name); err != nil {
		return 0, err
	} else if running {
		state, code = "active", 0
	}
	switch command {
	case "status":
		fmt.Fprintf(out, "%s.service\n  Loaded: loaded\n  Active: %s\n", name, state)
	case "is-active":
		fmt.Fprintln(out, state)
	case "is-enabled":
		fmt.Fprintln(out, "enabled")
		return 0, nil
	}
	return code, nil
}
