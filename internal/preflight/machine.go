package preflight

import (
	"errors"
	"log/slog"

	"swiftlet/internal/cgroup"
	"swiftlet/internal/config"
	"swiftlet/internal/host"
	"swiftlet/internal/node"
	"swiftlet/internal/oom"
	"swiftlet/internal/resource"
	"swiftlet/internal/resource/userns"
)

func kernelFeatures(cfg *config.Config) error { return cfg.CheckHost(config.ReadHost()) }

func hostName(cfg *config.Config) error {
	_, err := host.Hostname(cfg.Flags.HostnameOverride)
	return err
}

func kernelSettings(cfg *config.Config) error {
	if !cfg.Kubelet.ProtectKernelDefaults {
		return nil
	}
	return about("protectKernelDefaults", host.CheckKernelSettings())
}

func kernelLog(cfg *config.Config) error {
	machine, err := node.ReadMachine("/")
	if err != nil {
		return err
	}
	log, err := oom.OpenKernelLog(oom.RulesFrom(cfg, machine.UserNamespace), slog.New(slog.DiscardHandler))
	if log == nil {
		return err
	}
	return log.Close()
}

func cgroups(*config.Config) error {
	_, err := cgroup.Detect()
	return err
}

// capacity compares the reservations with what the host has.
func capacity(cfg *config.Config) error {
	machine, settings, err := readMachine(cfg)
	if err != nil {
		return err
	}
	return settings.CheckCapacity(machine)
}

// exclusiveResources compares the policies of CPUs, memory and topology with the host.
func exclusiveResources(cfg *config.Config) error {
	machine, settings, err := readMachine(cfg)
	if err != nil {
		return err
	}
	reserved, err := settings.Reserved.Exclusive(machine.MemoryBytes)
	if err != nil {
		return err
	}
	return resource.Check(cfg, machine.MemoryBytes, reserved)
}

func readMachine(cfg *config.Config) (node.Machine, node.Config, error) {
	machine, err := node.ReadMachine("/")
	settings, settingsErr := node.ConfigFrom(cfg, "")
	return machine, settings, errors.Join(err, settingsErr)
}

func userNamespaces(cfg *config.Config) error {
	ids, err := userns.ConfigFrom(cfg)
	if err != nil {
		return err
	}
	_, err = userns.New(ids, slog.New(slog.DiscardHandler)) // reads only
	return err
}
