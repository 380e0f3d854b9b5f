package config

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestFlagsEqualReference compares with the reference kubelet's flags. Three insecure defaults differ.
func TestFlagsEqualReference(t *testing.T) {
	table, err := os.ReadFile("testdata/flags.tsv")
	if err != nil {
		t.Fatal(err)
	}
	secure := map[string]string{"anonymous-auth": "", "authorization-mode": `"Webhook"`, "read-only-port": ""}
	flags, kc := defaultFlags(), flagDefaults(nil)
	set := bind(&flags, &kc).set
	seen := map[string]bool{}
	for line := range strings.Lines(string(table)) {
		cells := strings.Split(strings.TrimRight(line, "\n"), "\t")
		name, kind, value, deprecated := cells[0], cells[1], cells[2], cells[3] == "deprecated"
		seen[name] = true
		f := set.Lookup(name)
		if f == nil {
			t.Errorf("--%s is missing", name)
			continue
		}
		if other, ok := secure[name]; ok {
			value = other
		}
		if got := typeOf(f); got != kind {
			t.Errorf("--%s is of type %s, want %s", name, got, kind)
		}
		if got := defaultOf(f); got != value {
			t.Errorf("--%s has default %s, want %s", name, got, value)
		}
		if (f.Deprecated != "") != deprecated {
			t.Errorf("--%s: deprecated = %t, want %t", name, f.Deprecated != "", deprecated)
		}
	}
	own := map[string]bool{"require-create-for-upgrades": true, "last-known-pods": true, "enable-ui": true} // flags that only Swiftlet has
	set.VisitAll(func(f *pflag.Flag) {
		if !seen[f.Name] && !own[f.Name] {
			t.Errorf("--%s is not a flag of the reference kubelet", f.Name)
		}
	})
}

// typeOf is the type in the reference kubelet's help.
func typeOf(f *pflag.Flag) string {
	switch {
	case f.Name == "seccomp-default":
		return "RuntimeDefault" // the help quotes the word, which pflag prints as the type
	case f.NoOptDefVal != "" && f.Value.Type() == "version":
		return "version[=true]"
	}
	switch kind := f.Value.Type(); kind {
	case "int64":
		return "int"
	case "stringSlice":
		return "strings"
	default:
		return kind
	}
}

// defaultOf is the default in the reference kubelet's help, empty for a zero value.
func defaultOf(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "false", "0", "0s", "[]":
		return ""
	}
	if f.Value.Type() == "string" {
		return `"` + f.DefValue + `"`
	}
	return f.DefValue
}

func TestFlagFieldsExist(t *testing.T) {
	flags, kc := defaultFlags(), flagDefaults(nil)
	for flag, field := range bind(&flags, &kc).fields {
		if !fieldExists(field) {
			t.Errorf("--%s sets %s, which is not a field", flag, field)
		}
	}
}

func TestFlagValues(t *testing.T) {
	c := mustLoad(t,
		"--node-labels=a=b,node.kubernetes.io/x=y", "--node-labels=c=d",
		"--register-with-taints=k=v:NoSchedule,k:NoExecute",
		"--reserved-memory=0:memory=1Gi", "--reserved-memory=1:memory=2Gi,hugepages-2Mi=4Mi",
		"--eviction-hard=memory.available<1Gi,nodefs.available<5%",
		"--manifest-url-header=a:1,b:2", "--manifest-url-header=a:3",
		"--vmodule=x=1", "--v=4", "--cpu-manager-policy-options=a=b,c=d", "--cluster-dns=1.1.1.1,2.2.2.2", "--address=::", "--kubeconfig", "/k", "--seccomp-default")
	kc := c.Kubelet
	checks := map[string][2]string{
		"labels":   {pairs(c.Flags.NodeLabels), "a=b c=d node.kubernetes.io/x=y"},
		"taints":   {(*taintsValue)(&kc.RegisterWithTaints).String(), "k=v:NoSchedule,k=:NoExecute"},
		"memory":   {(&reservedMemoryValue{target: &kc.ReservedMemory}).String(), "0:memory=1Gi;1:hugepages-2Mi=4Mi,memory=2Gi"},
		"eviction": {pairs(kc.EvictionHard), "memory.available=1Gi nodefs.available=5%"},
		"headers":  {strings.Join(kc.StaticPodURLHeader["a"], " "), "1 3"},
		"dns":      {strings.Join(kc.ClusterDNS, " "), "1.1.1.1 2.2.2.2"},
		"address":  {kc.Address, "::"},
		"cpu":      {pairs(kc.CPUManagerPolicyOptions), "a=b,c=d"}, // not split at commas
	}
	for what, pair := range checks {
		if pair[0] != pair[1] {
			t.Errorf("%s = %q, want %q", what, pair[0], pair[1])
		}
	}
	if kc.Logging.Verbosity != 4 || len(kc.Logging.VModule) != 1 || !c.SeccompDefault() || c.Flags.Kubeconfig != "/k" {
		t.Errorf("verbosity %d, vmodule %v, seccomp %t, kubeconfig %q", kc.Logging.Verbosity, kc.Logging.VModule, c.SeccompDefault(), c.Flags.Kubeconfig)
	}
}

func TestUsageNamesEveryFlag(t *testing.T) {
	usage := Usage(100)
	flags, kc := defaultFlags(), flagDefaults(nil)
	bind(&flags, &kc).set.VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(usage, "--"+f.Name) {
			t.Errorf("--%s is not in the help", f.Name)
		}
	})
	if before, after, _ := strings.Cut(usage, "deprecated; most have"); !strings.Contains(before, "--kubeconfig") || !strings.Contains(after, "[maxPods]") {
		t.Error("deprecated flags are not last, or lack the name of their field")
	}
}
