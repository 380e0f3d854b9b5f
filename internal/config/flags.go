package config

import (
	"time"

	kubelet "k8s.io/kubelet/config/v1beta1"
)

// Flags are the settings that belong to one machine and so have no field in the
// configuration file, which is meant to be shared by many.
type Flags struct {
	ConfigFile string
	ConfigDir  string

	Kubeconfig          string // empty: no API server
	BootstrapKubeconfig string
	CertDir             string
	RootDir             string

	HostnameOverride string
	NodeIP           string // one address, or one of each family separated by a comma
	NodeLabels       map[string]string
	CloudProvider    string // "" or "external"

	ImageCredentialProviderConfig string
	ImageCredentialProviderBinDir string
	RuntimeCgroups                string
	SeccompDefault                bool

	LockFile             string
	ExitOnLockContention bool

	MinimumContainerTTL               time.Duration
	MaximumDeadContainersPerContainer int32
	MaximumDeadContainers             int32
	AllocatableIgnoreEviction         bool

	housekeepingInterval time.Duration // accepted, unused: usage is read when asked for
	mounterPath          string        // accepted, unused
	help                 bool
	version              versionValue
}

func defaultFlags() Flags {
	return Flags{
		CertDir:                           "/var/lib/kubelet/pki",
		RootDir:                           "/var/lib/kubelet",
		NodeLabels:                        map[string]string{},
		MaximumDeadContainersPerContainer: 1,
		MaximumDeadContainers:             -1,
		housekeepingInterval:              10 * time.Second,
	}
}

// bind makes a command line that writes into f and kc. Every pointer of kc is set: it has
// been through applyDefaults.
func bind(f *Flags, kc *kubelet.KubeletConfiguration) *commandLine {
	c := newCommandLine()
	c.bindCluster(f, kc)
	c.bindNode(f, kc)
	c.bindFiles(f, kc)
	c.bindPodSources(kc)
	c.bindServer(kc)
	c.bindAuth(kc)
	c.bindTLS(kc)
	c.bindRuntime(f, kc)
	c.bindImages(f, kc)
	c.bindContainers(f, kc)
	c.bindReserved(kc)
	c.bindAllocation(kc)
	c.bindEviction(f, kc)
	c.bindLogging(kc)
	c.bindProcess(f, kc)
	return c
}

// withoutEffect names flags that are accepted so that an existing command line keeps
// working, with the reason why they change nothing here.
var withoutEffect = map[string]string{
	"cpu-manager-reconcile-period": "containers move as soon as other CPUs are theirs",
	"housekeeping-interval":        "usage is read from the kernel when asked for, not collected in advance",
	"volume-stats-agg-period":      "volume usage is read when asked for, not collected in advance",
	"hairpin-mode":                 "the container runtime's network plugin decides it",
	"experimental-mounter-path":    "mounts are made without a helper program",
	"log-flush-frequency":          "log lines are written at once",
	"log-text-info-buffer-size":    "log lines are written at once",
	"log-json-info-buffer-size":    "log lines are written at once",
}
