package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	cliflag "k8s.io/component-base/cli/flag"
	logs "k8s.io/component-base/logs/api/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
	netutils "k8s.io/utils/net"
)

func gatesFlag(m *map[string]bool) pflag.Value { return cliflag.NewMapStringBool(m) }

// ipValue is an IP address in the notation of the flag.
type ipValue string

func (v *ipValue) String() string { return string(*v) }
func (*ipValue) Type() string     { return "ip" }

func (v *ipValue) Set(s string) error {
	if s == "" { // keeps the default
		return nil
	}
	if netutils.ParseIPSloppy(s) == nil {
		return fmt.Errorf("%q is not an IP address", s)
	}
	*v = ipValue(s)
	return nil
}

// taintsValue parses key[=value]:effect, separated by commas. A repeated flag replaces the value.
type taintsValue []v1.Taint

func (*taintsValue) Type() string { return "[]v1.Taint" }

func (v *taintsValue) String() string {
	var all []string
	for _, t := range *v {
		all = append(all, fmt.Sprintf("%s=%s:%s", t.Key, t.Value, t.Effect))
	}
	return strings.Join(all, ",")
}

func (v *taintsValue) Set(s string) error {
	*v = nil
	if s == "" {
		return nil
	}
	for one := range strings.SplitSeq(s, ",") {
		pair, effect, ok := strings.Cut(one, ":")
		key, value, _ := strings.Cut(pair, "=")
		taint := v1.Taint{Key: key, Value: value, Effect: v1.TaintEffect(effect)}
		if message := taintProblem(taint); !ok || effect == "" || message != "" {
			return fmt.Errorf("%q is not a taint: want key=value:effect%s", one, prefixed("; ", message))
		}
		if slices.ContainsFunc(*v, func(t v1.Taint) bool { return t.Key == taint.Key && t.Effect == taint.Effect }) {
			return fmt.Errorf("taint %s:%s is given twice", taint.Key, taint.Effect)
		}
		*v = append(*v, taint)
	}
	return nil
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// reservedMemoryValue parses node:type=quantity,…;node:…. Repeated flags add up.
type reservedMemoryValue struct {
	target *[]kubelet.MemoryReservation
	used   bool // the first use replaces the value of the configuration file
}

func (*reservedMemoryValue) Type() string { return "reserved-memory" }

func (v *reservedMemoryValue) String() string {
	if v.target == nil {
		return ""
	}
	var all []string
	for _, r := range *v.target {
		var limits []string
		for _, name := range slices.Sorted(maps.Keys(r.Limits)) {
			q := r.Limits[name]
			limits = append(limits, fmt.Sprintf("%s=%s", name, q.String()))
		}
		all = append(all, fmt.Sprintf("%d:%s", r.NumaNode, strings.Join(limits, ",")))
	}
	return strings.Join(all, ";")
}

func (v *reservedMemoryValue) Set(s string) error {
	if s == "" {
		return nil
	}
	if !v.used {
		*v.target, v.used = nil, true
	}
	for one := range strings.SplitSeq(s, ";") {
		reservation, err := parseReservation(one)
		if err != nil {
			return fmt.Errorf("%q is not a memory reservation, as in 0:memory=1Gi,hugepages-2Mi=100Mi: %w", one, err)
		}
		*v.target = append(*v.target, reservation)
	}
	return nil
}

func parseReservation(s string) (kubelet.MemoryReservation, error) {
	r := kubelet.MemoryReservation{Limits: v1.ResourceList{}}
	node, limits, _ := strings.Cut(s, ":")
	number, err := strconv.ParseInt(node, 10, 32)
	if err != nil {
		return r, fmt.Errorf("%q is not the number of a NUMA node", node)
	}
	r.NumaNode = int32(number)
	for limit := range strings.SplitSeq(limits, ",") {
		name, value, _ := strings.Cut(limit, "=")
		if !isMemory(v1.ResourceName(name)) {
			return r, fmt.Errorf("%q is not a kind of memory", name)
		}
		q, err := resource.ParseQuantity(value)
		if err != nil {
			return r, fmt.Errorf("%q is not a quantity", value)
		}
		r.Limits[v1.ResourceName(name)] = q
	}
	return r, nil
}

// versionValue is the value of --version, which is "true" without an argument.
type versionValue string

func (v *versionValue) String() string { return string(*v) }
func (*versionValue) Type() string     { return "version" }

func (v *versionValue) Set(s string) error {
	if s == "raw" {
		*v = "raw"
		return nil
	}
	on, err := strconv.ParseBool(s)
	if err != nil {
		return fmt.Errorf("%q is neither true, false nor raw", s)
	}
	*v = ""
	if on {
		*v = "true"
	}
	return nil
}

// VModule formats the setting for klog's flag.
func VModule(modules logs.VModuleConfiguration) string {
	return logs.VModuleConfigurationPflag(&modules).String()
}
