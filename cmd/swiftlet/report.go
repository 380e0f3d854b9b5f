package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"swiftlet/internal/boundedio"
	"swiftlet/internal/bugreport"
)

const reportHelp = `Writes an archive to attach to a bug: configuration, versions, states of the node and its pods, the steps of
each pod, recent logs, metrics, mounts, cgroups, disks and the kernel. index.txt lists what is in it, and
what could not be read.

It has no Secrets, no logs of containers, no values of environment variables, no arguments of commands and no
annotations. What looks like a password, a token or a key is removed from logs and all other texts. Read it
before you publish it: it has the names of pods, images, hosts and addresses.

It asks the same kubelet as "swiftlet why". Logs, mounts and cgroups are read of this machine if the kubelet
runs here. It may be run while the kubelet hangs or is down.`

// reportFlags are the flags of `swiftlet report`.
type reportFlags struct {
	out, runDir string
	reach       reachFlags
	clock       clock.Clock
}

func newReportCommand() *cobra.Command {
	f := reportFlags{clock: clock.RealClock{}}
	command := &cobra.Command{
		Use:   "report [NODE]",
		Short: "Writes an archive to attach to a bug, without secrets",
		Long:  reportHelp,
		Args:  cobra.MaximumNArgs(1),
		Example: `  swiftlet report
  swiftlet report worker-3 --kubeconfig admin.conf -o worker-3.tar.gz`,
		RunE: func(command *cobra.Command, args []string) error {
			command.SilenceUsage = true
			return f.run(command, strings.Join(args, ""))
		},
	}
	flags := command.Flags()
	flags.StringVarP(&f.out, "output", "o", "", "file to write; the default is swiftlet-report-HOST-TIME.tar.gz")
	flags.StringVar(&f.runDir, "run-dir", "/run/swiftlet", "--run-dir of \"swiftlet up\" on this machine")
	f.reach.add(command)
	return command
}

func (f reportFlags) run(command *cobra.Command, node string) error {
	a, err := f.reach.connect()
	if err != nil {
		return err
	}
	if a.proxied && node == "" {
		return errors.New("read arguments: name the node, as in \"report NODE\"")
	}
	host := node
	if host == "" {
		host = hostname()
	}
	name := fmt.Sprintf("swiftlet-report-%s-%s", filepath.Base(host), f.clock.Now().UTC().Format("20060102T150405Z"))
	if f.out == "" {
		f.out = name + ".tar.gz"
	}
	cfg := bugreport.Config{Dir: name, Version: buildDescription()}
	deps := bugreport.Deps{Clock: f.clock, Progress: command.ErrOrStderr(), Kubelet: a.kubelet(node)}
	if a.up {
		cfg.Root, cfg.RunDir = f.reach.root, f.runDir
	}
	if a.proxied {
		deps.Node = func(ctx context.Context) ([]byte, error) {
			return a.get(ctx, "node "+node, "/api/v1/nodes/"+node, "", "application/json")
		}
	}
	if cfg.Elsewhere, err = a.elsewhere(command.Context(), node); err != nil {
		cfg.Elsewhere = fmt.Sprintf("whether the kubelet runs on this machine is not known (%v)", err)
	}
	if err := f.write(command.Context(), cfg, deps); err != nil {
		return err
	}
	_, err = fmt.Fprintln(command.OutOrStdout(), f.out)
	return err
}

// write writes the archive to a file that only its owner can read, and that is complete if it exists.
func (f reportFlags) write(ctx context.Context, cfg bugreport.Config, deps bugreport.Deps) error {
	file, err := os.CreateTemp(filepath.Dir(f.out), ".swiftlet-report-*") // with mode 0600
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	defer os.Remove(file.Name())
	err = bugreport.Write(ctx, file, cfg, deps)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), f.out); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// kubelet returns what reads from the kubelet of a node, through the API server if need be.
func (a *agentAPI) kubelet(node string) func(ctx context.Context, path, query string) ([]byte, error) {
	return func(ctx context.Context, path, query string) ([]byte, error) {
		what := path
		if a.proxied {
			path = "/api/v1/nodes/" + node + "/proxy" + path
		}
		return a.get(ctx, what, path, query, "*/*")
	}
}

// elsewhere says why the kubelet's machine is not this one; "" if it is.
func (a *agentAPI) elsewhere(ctx context.Context, node string) (string, error) {
	if a.up {
		return "", nil
	}
	if !a.proxied {
		return elsewhereThan(a.base.Hostname())
	}
	var n v1.Node
	if err := a.read(ctx, "node "+node, "/api/v1/nodes/"+node, &n); err != nil {
		return "", err
	}
	boot, err := boundedio.ReadFile("/proc/sys/kernel/random/boot_id", boundedio.Small)
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(string(boot)) != n.Status.NodeInfo.BootID {
		return "node " + node + " is not this machine; run the command there for logs, mounts and cgroups", nil
	}
	return "", nil
}

// elsewhereThan compares a host with the addresses of this machine.
func elsewhereThan(host string) (string, error) {
	if host == "localhost" {
		return "", nil
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		own, err := net.InterfaceAddrs()
		if err != nil {
			return "", err
		}
		for _, a := range own {
			if prefix, err := netip.ParsePrefix(a.String()); err == nil && (prefix.Addr() == ip || ip.IsLoopback()) {
				return "", nil
			}
		}
	} else if host == hostname() {
		return "", nil
	}
	return host + " is not this machine; run the command there for logs, mounts and cgroups", nil
}
