package cpu

import (
	"maps"
	"slices"
	"strconv"

	"swiftlet/internal/config"
	"swiftlet/internal/resource/numa"
)

// Options are the static policy's options.
type Options struct {
	// FullCores allocates whole physical cores only.
	FullCores bool
	// AcrossNodes distributes CPUs that do not fit on one NUMA node evenly across several.
	AcrossNodes bool
	// BySocket aligns CPUs by socket instead of by NUMA node.
	BySocket bool
	// AcrossCores allocates one CPU of each core first.
	AcrossCores bool
	// StrictReservation excludes the reserved CPUs from the shared pool.
	StrictReservation bool
	// ByCache prefers CPUs that share a last-level cache.
	ByCache bool
}

// Option names in cpuManagerPolicyOptions.
const (
	fullCores         = "full-pcpus-only"
	acrossNodes       = "distribute-cpus-across-numa"
	bySocket          = "align-by-socket"
	acrossCores       = "distribute-cpus-across-cores"
	strictReservation = "strict-cpu-reservation"
	byCache           = "prefer-align-cpus-by-uncorecache"
)

// AllowedOptions says which options besides the stable ones may be used.
type AllowedOptions struct{ Alpha, Beta bool }

// OptionsFrom reads the options of the configuration.
func OptionsFrom(cfg *config.Config) (Options, error) {
	kc, f := &cfg.Kubelet, cfg.Features
	options, err := ParseOptions(kc.CPUManagerPolicyOptions, AllowedOptions{Alpha: f.CPUManagerPolicyAlphaOptions, Beta: f.CPUManagerPolicyBetaOptions})
	if err != nil {
		return options, err
	}
	if options.BySocket && kc.TopologyManagerPolicy == numa.SingleNode {
		return options, invalidOption(bySocket, "excludes topologyManagerPolicy %s", numa.SingleNode)
	}
	return options, nil
}

func invalidOption(name, format string, args ...any) error {
	return config.Invalid("cpuManagerPolicyOptions."+name, format, args...)
}

// ParseOptions parses and validates cpuManagerPolicyOptions.
func ParseOptions(values map[string]string, allowed AllowedOptions) (o Options, err error) {
	field := map[string]*bool{
		fullCores: &o.FullCores, acrossNodes: &o.AcrossNodes, bySocket: &o.BySocket,
		acrossCores: &o.AcrossCores, strictReservation: &o.StrictReservation, byCache: &o.ByCache,
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		target, known := field[name]
		switch {
		case !known:
			return o, invalidOption(name, "is not an option of the CPU manager%s", config.DidYouMean(name, maps.Keys(field)))
		case (name == bySocket || name == acrossCores) && !allowed.Alpha:
			return o, invalidOption(name, "needs feature gate CPUManagerPolicyAlphaOptions")
		case name == acrossNodes && !allowed.Beta:
			return o, invalidOption(name, "needs feature gate CPUManagerPolicyBetaOptions")
		}
		if *target, err = strconv.ParseBool(values[name]); err != nil {
			return o, invalidOption(name, "%q is neither true nor false", values[name])
		}
	}
	for _, pair := range [][2]string{{fullCores, acrossCores}, {acrossNodes, acrossCores}, {byCache, acrossCores}, {byCache, acrossNodes}} {
		if *field[pair[0]] && *field[pair[1]] {
			return o, invalidOption(pair[0], "excludes %s", pair[1])
		}
	}
	return o, nil
}
