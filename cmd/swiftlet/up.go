package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"swiftlet/internal/agent"
	"swiftlet/internal/config"
	"swiftlet/internal/cri"
	"swiftlet/internal/standalone"
)

// upFlags are the choices of `swiftlet up`, before they are checked.
type upFlags struct {
	manifests, root, run, bundle string
	images                       []string
	podCIDR, nodeName            string
	port, healthzPort            int
	cgroupDriver                 string
	keep, noTable, verbose       bool
}

const upHelp = `Runs pods on this machine without a control plane: starts the bundled containerd, a
pod network and the agent, and shows the pods of a directory of manifests. A containerd
or kubelet that is already on the machine is not touched.

The directory holds Pods, ConfigMaps and Secrets in .yaml or .json files; a change there
is followed within a second. Ctrl-C stops the pods with their grace periods and takes
away everything but --root, where images and logs stay; a second Ctrl-C does not wait.`

func newUpCommand() *cobra.Command {
	var f upFlags
	command := &cobra.Command{
		Use:   "up",
		Short: "Run pods from a directory on a bare machine, runtime and network included",
		Long:  upHelp,
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			command.SilenceUsage = true
			return up(command.Context(), f)
		},
	}
	beside := programDir()
	flags := command.Flags()
	flags.StringVar(&f.manifests, "manifests", "/etc/swiftlet/manifests", "directory of Pods, ConfigMaps and Secrets")
	flags.StringVar(&f.root, "root", "/var/lib/swiftlet", "folder for images, logs, certificates and volumes; stays")
	flags.StringVar(&f.run, "run-dir", "/run/swiftlet", "folder for sockets and the like; goes")
	flags.StringVar(&f.bundle, "bundle", filepath.Join(beside, "bundle"), "folder of containerd, runc and the CNI plugins")
	flags.StringSliceVar(&f.images, "images", []string{filepath.Join(beside, "images")}, "folders of image archives (*.tar) to import")
	flags.StringVar(&f.podCIDR, "pod-cidr", "10.88.0.0/16", "addresses of pods")
	flags.StringVar(&f.nodeName, "node-name", hostname(), "name of this node")
	flags.IntVar(&f.port, "port", 10250, "port of the agent's HTTPS API, on loopback")
	flags.IntVar(&f.healthzPort, "healthz-port", 10248, "port of the agent's health check, on loopback; 0 for none")
	flags.StringVar(&f.cgroupDriver, "cgroup-driver", "cgroupfs", "who makes cgroups: cgroupfs or systemd")
	flags.BoolVar(&f.keep, "keep", false, "on exit leave pods and runtime running, for the next one to take over")
	flags.BoolVar(&f.noTable, "no-table", false, "print one line per change, on a terminal too")
	flags.BoolVar(&f.verbose, "verbose", false, "log every step")
	return command
}

// up runs until a signal, or a failure, ends it.
func up(ctx context.Context, f upFlags) error {
	cfg, err := f.config()
	if err != nil {
		return err
	}
	terminal := !f.noTable && term.IsTerminal(int(os.Stdout.Fd()))
	log, setVerbosity, closeLog, err := f.logger(cfg.Paths, terminal)
	if err != nil {
		return err
	}
	defer closeLog()
	klog.SetSlogLogger(log) // the Kubernetes libraries log with klog
	client, err := cri.Dial(cri.Config{RuntimeEndpoint: cfg.Paths.Socket(), RequestTimeout: 2 * time.Minute})
	if err != nil {
		return err
	}
	defer client.Close()
	var rows func() int
	if terminal {
		rows = terminalRows
	}
	ctx, hurry, release := stages(ctx)
	defer release()
	supervisor, err := standalone.New(cfg, standalone.Deps{
		Log: log, Clock: clock.RealClock{}, Runtime: client, Agent: standaloneAgent(log, setVerbosity),
		Out: os.Stdout, Rows: rows, ForceStop: hurry,
	})
	if err != nil {
		return err
	}
	return supervisor.Run(ctx)
}

func (f upFlags) config() (standalone.Config, error) {
	bundle, err := filepath.EvalSymlinks(f.bundle) // a running containerd is known by its real path
	if err != nil {
		return standalone.Config{}, fmt.Errorf("find the bundled programs: %w (`make build` makes them; --bundle names their folder)", err)
	}
	for _, path := range []*string{&f.manifests, &f.root, &f.run, &bundle} {
		if *path, err = filepath.Abs(*path); err != nil {
			return standalone.Config{}, err
		}
	}
	paths, err := standalone.NewPaths(f.root, f.run, bundle)
	if err != nil {
		return standalone.Config{}, err
	}
	pods, err := netip.ParsePrefix(f.podCIDR)
	if err != nil {
		return standalone.Config{}, fmt.Errorf("read --pod-cidr: %w", err)
	}
	if f.cgroupDriver != "cgroupfs" && f.cgroupDriver != "systemd" {
		return standalone.Config{}, fmt.Errorf("read --cgroup-driver: %q is neither cgroupfs nor systemd", f.cgroupDriver)
	}
	return standalone.Config{
		Paths: paths, Manifests: f.manifests, ImageDirs: f.images, PodCIDR: pods.Masked(), NodeName: f.nodeName,
		Port: f.port, HealthzPort: f.healthzPort, SystemdCgroups: f.cgroupDriver == "systemd", Keep: f.keep,
	}, nil
}

// logger writes to a file while a table has the terminal.
func (f upFlags) logger(paths standalone.Paths, terminal bool) (log *slog.Logger, setVerbosity func(string) error, closeLog func(), err error) {
	out, closeLog := os.Stderr, func() {}
	if terminal {
		if err := os.MkdirAll(filepath.Dir(paths.AgentLog()), 0o711); err != nil {
			return nil, nil, nil, fmt.Errorf("open the log: %w", err)
		}
		if out, err = standalone.OpenLog(paths.AgentLog()); err != nil {
			return nil, nil, nil, err
		}
		closeLog = func() { out.Close() }
	}
	level, setVerbosity, _ := newVerbosity()
	if f.verbose {
		level.Set(slog.LevelDebug)
	}
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: level})), setVerbosity, closeLog, nil
}

// stages turns the first signal (a closed terminal is one) into the end of the context and the second into haste.
func stages(parent context.Context) (ctx context.Context, hurry <-chan struct{}, release func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	hurried, released := make(chan struct{}), make(chan struct{})
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// A reader of our output that goes away must not end us before we have cleaned up; a
	// signal that is caught, unlike one that is ignored, is not inherited by containers.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for count := 0; ; count++ {
			select {
			case <-released:
				return
			case <-signals:
			}
			switch count {
			case 0:
				cancel()
			case 1:
				close(hurried)
			}
		}
	}()
	return ctx, hurried, func() {
		signal.Stop(signals)
		signal.Stop(broken)
		close(released)
		<-watched
		cancel()
	}
}

// terminalRows is asked each time: a window may be resized.
func terminalRows() int {
	_, rows, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		return 24
	}
	return rows
}

// programDir is the folder of this program, beside which the build puts what it needs.
func programDir() string {
	self, err := os.Executable()
	if err != nil {
		return "."
	}
	return filepath.Dir(self)
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return strings.ToLower(name)
}

// standaloneAgent runs the agent as `swiftlet kubelet` would, with the command line that
// the supervisor made.
func standaloneAgent(log *slog.Logger, setVerbosity func(string) error) func(context.Context, standalone.AgentRun) error {
	return func(ctx context.Context, run standalone.AgentRun) error {
		cfg, err := config.Load(run.Args)
		if err != nil {
			return err
		}
		for _, notice := range cfg.Notices {
			log.Warn(notice)
		}
		return agent.Run(ctx, cfg, agent.Options{Log: log, SetVerbosity: setVerbosity, Drain: run.Drain, Show: run.Display.Show, Forget: run.Display.Forget})
	}
}
