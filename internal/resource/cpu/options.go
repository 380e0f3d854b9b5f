package cpu

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Options refine the static policy.
type Options struct {
	// FullCores gives out whole cores only.
	FullCores bool
	// AcrossNodes spreads what one NUMA node does not have evenly over several.
	AcrossNodes bool
	// BySocket counts CPUs as lying together when they share a socket.
	BySocket bool
	// AcrossCores gives out one CPU of each core first.
	AcrossCores bool
	// StrictReservation keeps the reserved CPUs from the containers that share, too.
	StrictReservation bool
	// ByCache prefers CPUs that share a last-level cache.
	ByCache bool
}

// The options' names.
const (
	fullCores         = "full-pcpus-only"
	acrossNodes       = "distribute-cpus-across-numa"
	bySocket          = "align-by-socket"
	acrossCores       = "distribute-cpus-across-cores"
	strictReservation = "strict-cpu-reservation"
	byCache           = "prefer-align-cpus-by-uncorecache"
)

// Unfinished says which kinds of options may be used beside the stable ones.
type Unfinished struct{ Alpha, Beta bool }

// ParseOptions reads cpuManagerPolicyOptions.
func ParseOptions(given map[string]string, allowed Unfinished) (o Options, err error) {
	field := map[string]*bool{
		fullCores: &o.FullCores, acrossNodes: &o.AcrossNodes, bySocket: &o.BySocket,
		acrossCores: &o.AcrossCores, strictReservation: &o.StrictReservation, byCache: &o.ByCache,
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		target, known := field[name]
		switch {
		case !known:
			return o, fmt.Errorf("cpuManagerPolicyOptions: there is no option %q", name)
		case (name == bySocket || name == acrossCores) && !allowed.Alpha:
			return o, fmt.Errorf("cpuManagerPolicyOptions: %s needs feature gate CPUManagerPolicyAlphaOptions", name)
		case name == acrossNodes && !allowed.Beta:
			return o, fmt.Errorf("cpuManagerPolicyOptions: %s needs feature gate CPUManagerPolicyBetaOptions", name)
		}
		if *target, err = strconv.ParseBool(given[name]); err != nil {
			return o, fmt.Errorf("cpuManagerPolicyOptions: %s: %q is neither true nor false", name, given[name])
		}
	}
	for _, pair := range [][2]string{{fullCores, acrossCores}, {acrossNodes, acrossCores}, {byCache, acrossCores}, {byCache, acrossNodes}} {
		if *field[pair[0]] && *field[pair[1]] {
			return o, fmt.Errorf("cpuManagerPolicyOptions: %s and %s exclude each other", pair[0], pair[1])
		}
	}
	return o, nil
}
