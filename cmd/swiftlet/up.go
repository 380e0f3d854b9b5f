package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/utils/clock"

	"swiftlet/internal/agent"
	"swiftlet/internal/config"
	"swiftlet/internal/cri"
	"swiftlet/internal/page"
	"swiftlet/internal/standalone"
)

// upFlags are the flags of `swiftlet up`.
type upFlags struct {
	manifests, root, run, bundle string
	configDir                    string
	images, mirrors              []string
	registryConfig               string
	podCIDR, nodeName            string
	port, healthzPort            int
	cgroupDriver, color          string
	keep, noTable, verbose       bool
	detach                       bool
	verifyBundle                 bool
	api, ui                      bool
	apiBundle, kubeconfigGroup   string
	apiPort                      int
}

const upHelp = `Runs pods on this machine without a control plane: starts the bundled containerd, a pod
network and the kubelet, and shows the status of the pods. It does not affect a containerd
or kubelet that is already on the machine.

The directory of manifests contains Pods, ConfigMaps and Secrets in .yaml or .json files.
Changes take effect within a second. Ctrl-C stops the pods with their grace periods and
removes everything but --root, which keeps images and logs. A second Ctrl-C does not wait
for grace periods.

With --api it serves the Kubernetes API, and the directory may contain objects of any kind.
It is incomplete and therefore off: docs/lone.md says what is missing.`

func newUpCommand() *cobra.Command {
	var f upFlags
	command := &cobra.Command{
		Use:   "up",
		Short: "Runs pods from a directory of manifests, with a bundled runtime and network",
		Long:  upHelp,
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			command.SilenceUsage = true
			detached := isDetached()
			if f.detach && !detached {
				return detach(command.Context(), f, command.OutOrStdout())
			}
			return up(command.Context(), f, detached)
		},
	}
	dir := executableDir()
	flags := command.Flags()
	flags.StringVar(&f.manifests, "manifests", "/etc/swiftlet/manifests", "directory of Pods, ConfigMaps and Secrets")
	flags.StringVar(&f.configDir, "config-dir", "/etc/swiftlet/kubelet.conf.d", "directory of *.conf files with fields of a KubeletConfiguration, which override those of \"swiftlet up\"; need not exist")
	f.addPlaces(flags)
	f.addAPIBundle(flags)
	flags.StringSliceVar(&f.images, "images", []string{filepath.Join(dir, "images")}, "directories of image archives (*.tar) to import")
	flags.StringArrayVar(&f.mirrors, "registry-mirror", nil, "HOST=URL of a mirror that images of the registry HOST are pulled from first, such as docker.io=https://mirror.example.com; repeatable")
	flags.StringVar(&f.registryConfig, "registry-config", "", "docker config.json with credentials of registries, or a directory with config.json and with HOST/hosts.toml or HOST/ca.crt as in /etc/containerd/certs.d")
	flags.StringVar(&f.nodeName, "node-name", hostname(), "name of the node")
	flags.IntVar(&f.port, "port", 10250, "port of the kubelet's HTTPS API on loopback")
	flags.IntVar(&f.healthzPort, "healthz-port", 10248, "port of the kubelet's health check on loopback; 0 disables it")
	flags.BoolVar(&f.api, "api", false, "serve the Kubernetes API for kubectl; incomplete: see docs/lone.md")
	flags.IntVar(&f.apiPort, "api-port", 6443, "port of the Kubernetes API on loopback")
	flags.StringVar(&f.kubeconfigGroup, "kubeconfig-group", "", "group whose members may read the kubeconfig of --api; without it only root may")
	flags.BoolVar(&f.ui, "ui", true, "serve the page of this node on --port, to who has a link; \"swiftlet ui\" prints one")
	flags.BoolVar(&f.keep, "keep", false, "leave pods and the container runtime running on exit; the next \"swiftlet up\" takes them over")
	flags.BoolVarP(&f.detach, "detach", "d", false, "run in the background; return when the node has started; \"swiftlet down\" stops it")
	flags.BoolVar(&f.noTable, "no-table", false, "print one line per change instead of a table, also on a terminal")
	flags.StringVar(&f.color, "color", "auto", "show the status of pods in colours: always, never, or auto: on a terminal, unless NO_COLOR is set")
	flags.BoolVar(&f.verbose, "verbose", false, "log at debug level")
	return command
}

// defaultRoot is the default of --root.
const defaultRoot = "/var/lib/swiftlet"

// addPlaces adds the flags that say where the node is: those of `swiftlet down`.
func (f *upFlags) addPlaces(flags *pflag.FlagSet) {
	flags.StringVar(&f.root, "root", defaultRoot, "directory for images, logs, certificates and volumes; kept on exit")
	flags.StringVar(&f.run, "run-dir", "/run/swiftlet", "directory for sockets and runtime state; removed on exit")
	flags.StringVar(&f.bundle, "bundle", filepath.Join(executableDir(), "bundle"), "directory of the containerd, runc and CNI plugin binaries")
	flags.StringVar(&f.podCIDR, "pod-cidr", "10.88.0.0/16", "CIDR of pod IP addresses")
	flags.StringVar(&f.cgroupDriver, "cgroup-driver", "cgroupfs", "cgroup driver: cgroupfs or systemd")
}

// addAPIBundle adds the flags that say which API server runs, and whether any may.
func (f *upFlags) addAPIBundle(flags *pflag.FlagSet) {
	flags.StringVar(&f.apiBundle, "api-bundle", filepath.Join(executableDir(), "api"), "directory of the API server and kubectl binaries")
	flags.BoolVar(&f.verifyBundle, "verify-bundle", true, "run only the programs that this executable was built with, which it knows by their SHA-256")
}

// up runs until it receives a signal or fails. If it is detached from its terminal, it logs to the file.
func up(ctx context.Context, f upFlags, detached bool) error {
	cfg, err := f.config()
	if err != nil {
		return err
	}
	if detached {
		if err := os.Chdir("/"); err != nil { // the directory of the user may be unmounted
			return err
		}
	}
	if cfg.Colours, err = colours(f.color, term.IsTerminal(int(os.Stdout.Fd())), os.Getenv("NO_COLOR")); err != nil {
		return err
	}
	terminal := !f.noTable && term.IsTerminal(int(os.Stdout.Fd()))
	log, setVerbosity, closeLog, err := f.logger(cfg.Paths, terminal || detached)
	if err != nil {
		return err
	}
	defer closeLog()
	client, err := cri.Dial(cri.Config{RuntimeEndpoint: cfg.Paths.Socket(), RequestTimeout: 2 * time.Minute})
	if err != nil {
		return err
	}
	defer client.Close()
	var rows func() int
	if terminal {
		rows = terminalRows
	}
	ctx, hurry, stop := handleSignals(ctx)
	defer stop()
	access := page.NewAccess(clock.RealClock{})
	supervisor, err := standalone.New(cfg, standalone.Deps{
		Log: log, Clock: clock.RealClock{}, Runtime: client, Agent: standaloneAgent(log, setVerbosity, access), Link: access.Link,
		Out: os.Stdout, Rows: rows, ForceStop: hurry,
	})
	if err != nil {
		return err
	}
	return supervisor.Run(ctx)
}

func (f upFlags) config() (standalone.Config, error) {
	bundle, err := filepath.EvalSymlinks(f.bundle) // a running containerd is identified by its real path
	if err != nil {
		return standalone.Config{}, fmt.Errorf("find bundled programs: %w (build them with `make build`, or set --bundle)", err)
	}
	for _, path := range []*string{&f.manifests, &f.configDir, &f.root, &f.run, &bundle} {
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
	hashes, err := standalone.ParseBundleHashes(bundleHashes)
	if err != nil {
		return standalone.Config{}, err
	}
	api, err := f.apiConfig()
	if err != nil {
		return standalone.Config{}, err
	}
	registries, err := f.registries()
	if err != nil {
		return standalone.Config{}, err
	}
	return standalone.Config{
		Registries: registries, Page: f.ui,
		API: api, BundleHashes: hashes, AnyBundle: !f.verifyBundle,
		Paths: paths, Manifests: f.manifests, ConfigDir: f.configDir, ImageDirs: f.images, PodCIDR: pods.Masked(), NodeName: f.nodeName,
		Port: f.port, HealthzPort: f.healthzPort, SystemdCgroups: f.cgroupDriver == "systemd", Keep: f.keep,
	}, nil
}

func (f upFlags) registries() (standalone.Registries, error) {
	r := standalone.Registries{Config: f.registryConfig}
	for _, text := range f.mirrors {
		m, err := standalone.ParseMirror(text)
		if err != nil {
			return r, fmt.Errorf("read --registry-mirror: %w", err)
		}
		r.Mirrors = append(r.Mirrors, m)
	}
	if r.Config == "" {
		return r, nil
	}
	var err error
	r.Config, err = filepath.Abs(r.Config)
	return r, err
}

// colours decides by --color, whether the output is a terminal, and NO_COLOR.
func colours(when string, terminal bool, noColor string) (bool, error) {
	switch when {
	case "always":
		return true, nil
	case "never":
		return false, nil
	case "auto":
		return terminal && noColor == "", nil
	}
	return false, fmt.Errorf("read --color: %q is neither auto, always nor never", when)
}

// apiConfig returns nil without --api.
func (f upFlags) apiConfig() (*standalone.APIConfig, error) {
	if !f.api {
		return nil, nil
	}
	dir, err := filepath.Abs(f.apiBundle)
	if err != nil {
		return nil, err
	}
	return &standalone.APIConfig{Programs: dir, Port: f.apiPort, KubeconfigGroup: f.kubeconfigGroup}, nil
}

// logger logs to a file if the terminal shows a table, or if there is none.
func (f upFlags) logger(paths standalone.Paths, toFile bool) (log *slog.Logger, setVerbosity func(string) error, closeLog func(), err error) {
	out, closeLog := io.Writer(os.Stderr), func() {}
	if toFile {
		file, err := standalone.OpenAgentLog(paths)
		if err != nil {
			return nil, nil, nil, err
		}
		out, closeLog = file, func() { file.Close() }
	}
	// With events, which no API server shows.
	logging := logsapi.LoggingConfiguration{Verbosity: 2, VModule: []logsapi.VModuleItem{{FilePattern: "recorder", Verbosity: 3}}}
	if f.verbose {
		logging.Verbosity = 4
	}
	log, setVerbosity, err = newLogger(&logging, out, out)
	return log, setVerbosity, closeLog, err
}

// handleSignals cancels ctx on the first signal, SIGHUP of a closed terminal included, and closes
// hurry on the second.
func handleSignals(parent context.Context) (ctx context.Context, hurry <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	hurried, stopped := make(chan struct{}), make(chan struct{})
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// SIGPIPE must not end the process before it has cleaned up. It is caught instead of ignored,
	// because child processes inherit ignored signals.
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		for count := 0; ; count++ {
			select {
			case <-stopped:
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
		signal.Stop(pipes)
		close(stopped)
		<-returned
		cancel()
	}
}

// terminalRows returns the current height of the terminal.
func terminalRows() int {
	_, rows, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		return 24
	}
	return rows
}

// executableDir returns the directory of the executable, which contains the bundle.
func executableDir() string {
	path, err := os.Executable()
	if err != nil {
		return "."
	}
	return filepath.Dir(path)
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return strings.ToLower(name)
}

// standaloneAgent runs the kubelet with the command line of the supervisor.
func standaloneAgent(log *slog.Logger, setVerbosity func(string) error, access *page.Access) func(context.Context, standalone.AgentRun) error {
	return func(ctx context.Context, run standalone.AgentRun) error {
		cfg, err := config.Load(run.Args)
		if err != nil {
			return err
		}
		logStart(log, cfg)
		return agent.Run(ctx, cfg, agent.Options{
			Log: log, SetVerbosity: setVerbosity, Version: ownVersion(), Drain: run.Drain, Show: run.Display.Show, Forget: run.Display.Forget,
			Access: access, OnlyNode: true,
		})
	}
}
