package config

import (
	"fmt"
	"path/filepath"
	"time"

	kubelet "k8s.io/kubelet/config/v1beta1"
)

// Flags are the settings of a single node. They have no field in the configuration file, which is
// shared by many nodes.
type Flags struct {
	ConfigFile string
	ConfigDir  string

	Kubeconfig          string // empty without an API server
	BootstrapKubeconfig string
	CertDir             string
	RootDir             string

	HostnameOverride string
	NodeIP           string // one address, or one of each family separated by a comma
	NodeLabels       map[string]string
	CloudProvider    string // "" or "external"
	LastKnownPods    bool

	ImageCredentialProviderConfig string
	ImageCredentialProviderBinDir string
	RuntimeCgroups                string
	SeccompDefault                bool

	// Swiftlet's own
	CreateForUpgrades, EnableUI bool

	LockFile             string
	ExitOnLockContention bool

	MinimumContainerTTL               time.Duration
	MaximumDeadContainersPerContainer int32
	MaximumDeadContainers             int32
	AllocatableIgnoreEviction         bool

	housekeepingInterval time.Duration // accepted but unused: usage is read on request
	mounterPath          string        // accepted but unused
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

// resolvePaths makes directories absolute: the kubelet passes paths below them to other programs.
func (f *Flags) resolvePaths() error {
	for _, dir := range []*string{&f.RootDir, &f.CertDir} {
		absolute, err := filepath.Abs(*dir)
		if err != nil {
			return fmt.Errorf("find %s: %w", *dir, err)
		}
		*dir = absolute
	}
	return nil
}

// bind returns a command line that writes to f and kc. The caller has called applyDefaults, so
// every pointer of kc is set.
func bind(f *Flags, kc *kubelet.KubeletConfiguration) *commandLine {
	c := newCommandLine()
	c.bindCluster(f, kc)
	c.bindNode(f, kc)
	c.bindFiles(f, kc)
	c.bindPodSources(kc)
	c.bindServer(kc)
	c.bindAuth(f, kc)
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
