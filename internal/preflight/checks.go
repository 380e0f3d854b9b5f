package preflight

import (
	"errors"
	"fmt"

	"swiftlet/internal/config"
)

// check is a condition that the kubelet needs to start. It changes nothing on the host.
type check struct {
	name string
	// host: the result depends on this host, not on the configuration alone.
	host bool
	// find returns an error if the condition is not met. A config.SettingError in it names the setting.
	find func(*config.Config) error
}

// checks are all checks. They are independent of each other, and call the functions that return the error
// when the kubelet is built. A test in package architecture finds errors of the agent's constructors that
// neither a check can return nor AtRunTime lists.
var checks = []check{
	{"runtime endpoint", false, runtimeEndpoint},
	{"CPU manager options", false, cpuOptions},
	{"topology manager options", false, topologyOptions},
	{"allowed sysctls", false, sysctls},
	{"reserved resources", false, reservations},
	{"eviction thresholds", false, evictionThresholds},
	{"log rotation", false, logRotation},
	{"image pulls", false, imagePulls},
	{"cgroup version and swap", true, kernelFeatures},
	{"host name", true, hostName},
	{"kernel settings", true, kernelSettings},
	{"kernel log", true, kernelLog},
	{"cgroups", true, cgroups},
	{"capacity", true, capacity},
	{"exclusive CPUs and memory", true, exclusiveResources},
	{"user namespaces", true, userNamespaces},
	{"directories", true, directories},
	{"state files", true, stateFiles},
	{"kubeconfig", true, kubeconfig},
	{"certificates", true, certificates},
	{"credential plugins", true, credentialPlugins},
}

// Options select what Run checks.
type Options struct {
	// ConfigOnly leaves out what depends on this host.
	ConfigOnly bool
	// Replaced is the process of a kubelet that ends before this one starts, so that its ports are free
	// then; 0 if there is none.
	Replaced int
}

// Run runs the checks. The error has one line for each condition that is not met, which begins with the
// file and line, or the flag, of the setting that it is about, or else with the name of the check.
func Run(cfg *config.Config, opts Options) error {
	var errs []error
	for _, c := range checks {
		if c.host && opts.ConfigOnly {
			continue
		}
		errs = append(errs, named(c.name, c.find(cfg)))
	}
	if !opts.ConfigOnly {
		errs = append(errs, ports(cfg, opts.Replaced))
	}
	return cfg.Locate(errors.Join(errs...))
}

// named adds the name of the check to an error that names no setting.
func named(check string, err error) error {
	var setting *config.SettingError
	if err == nil || errors.As(err, &setting) {
		return err
	}
	return fmt.Errorf("%s: %w", check, err)
}

// about returns a SettingError with the message of err, nil if err is.
func about(field string, err error) error {
	if err == nil {
		return nil
	}
	return config.Invalid(field, "%s", err)
}
