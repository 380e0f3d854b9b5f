package config

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kubelet "k8s.io/kubelet/config/v1beta1"

	"swiftlet/internal/pod"
)

func pairs(m map[string]string) string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		all = append(all, k+"="+m[k])
	}
	return strings.Join(all, " ")
}

// fieldExists follows a field path through the API type.
func fieldExists(path string) bool {
	t := reflect.TypeFor[kubelet.KubeletConfiguration]()
	for name := range strings.SplitSeq(path, ".") {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			return false
		}
		next, ok := jsonFields(t)[name]
		if !ok {
			return false
		}
		t = next
	}
	return true
}

func TestRulesNameFields(t *testing.T) {
	var fields []string
	for _, r := range numberRules {
		fields = append(fields, r.field)
	}
	for _, r := range durationRules {
		fields = append(fields, r.field)
	}
	for _, r := range choiceRules {
		fields = append(fields, r.field)
	}
	for _, r := range gateRules {
		fields = append(fields, r.field)
		if _, ok := knownGates()[r.gate]; !ok {
			t.Errorf("the rule of %s names the unknown gate %s", r.field, r.gate)
		}
	}
	for _, field := range fields {
		if !fieldExists(field) {
			t.Errorf("a rule names %s, which is not a field", field)
		}
	}
}

// TestPodFieldsAreGated: a field whose gate has graduated needs no gate any more, and one whose
// gate is unknown would always be dropped.
func TestPodFieldsAreGated(t *testing.T) {
	pod.NewGatedFields(func(name string) bool {
		_, unused := gatesWithoutEffect[name]
		if g, ok := knownGates()[name]; !ok || g.locked || unused {
			t.Errorf("a field of pods is behind gate %s, which cannot be set", name)
		}
		return true
	})
}

func TestFeaturesAreGates(t *testing.T) {
	for field := range structFields(reflect.TypeFor[Features]()) {
		if _, ok := knownGates()[field.Name]; !ok {
			t.Errorf("Features.%s is not a gate", field.Name)
		}
	}
}

// Each case is a configuration file after the two header lines, so its first line is line 3.
func TestInvalidFiles(t *testing.T) {
	cases := map[string]struct {
		file string
		args []string
		want string // lines of the error, with FILE for the file's path
	}{
		"unknown field": {file: "maxPod: 3", want: `FILE:3: maxPod: is not a known field; did you mean maxPods?`},
		"unknown nested field": {file: "authentication:\n  webhook:\n    enable: true",
			want: `FILE:5: authentication.webhook.enable: is not a known field; did you mean enabled?`},
		"duplicate field":     {file: "port: 1\nmaxPods: 2\nport: 3", want: `FILE:5: port: is given twice, here and on line 3`},
		"wrong type":          {file: "maxPods: many", want: `FILE:3: maxPods: "many" is not a whole number of 32 bits`},
		"number as string":    {file: "clusterDomain: 5", want: `FILE:3: clusterDomain: 5 is not a string (quote it)`},
		"number out of range": {file: "maxPods: 3000000000", want: `FILE:3: maxPods: 3000000000 is not a whole number of 32 bits`},
		"not a duration":      {file: "syncFrequency: 10", want: `FILE:3: syncFrequency: 10 is not a duration, such as 10s or 1m30s`},
		"list instead of map": {file: "evictionHard: [a]", want: `FILE:3: evictionHard: ["a"] is not a map`},
		"invalid list item":   {file: "clusterDNS:\n- 10.0.0.1\n- 7", want: `FILE:5: clusterDNS[1]: 7 is not a string (quote it)`},
		"not YAML":            {file: "a: b: c", want: `FILE:3: mapping values are not allowed in this context`},
		"invalid eviction threshold": {file: "maxPods: 3\nevictionHard:\n  memory.available: 10Gib",
			want: `FILE:5: evictionHard.memory.available: "10Gib" is not a quantity or percentage`},
		"several problems": {file: "maxPod: 3\nport: 0x\noomScoreAdj: 2000\nhairpinMode: up", args: []string{"--max-pods=-1"},
			want: "--max-pods: maxPods: -1 must be at least 0\n" +
				"FILE:3: maxPod: is not a known field; did you mean maxPods?\n" +
				"FILE:4: port: \"0x\" is not a whole number of 32 bits\n" +
				"FILE:5: oomScoreAdj: 2000 must be between -1000 and 1000\n" +
				"FILE:6: hairpinMode: \"up\" must be one of none, hairpin-veth, promiscuous-bridge"},
		"image GC low threshold above high":       {file: "imageGCLowThresholdPercent: 90", want: `FILE:3: imageGCLowThresholdPercent: 90 must be less than imageGCHighThresholdPercent, which is 85`},
		"parallel pulls with serializeImagePulls": {file: "serializeImagePulls: true\nmaxParallelImagePulls: 3", want: `FILE:4: maxParallelImagePulls: 3 needs serializeImagePulls to be false`},
		"soft threshold without grace period":     {file: "evictionSoft: {pid.available: 5%}", want: `FILE:3: evictionSoft.pid.available: needs evictionSoftGracePeriod.pid.available`},
		"unknown eviction signal":                 {file: "evictionHard: {memory.avail: 5%}", want: `FILE:3: evictionHard.memory.avail: is not an eviction signal`},
		"reserved unknown resource":               {file: "kubeReserved: {gpu: '1'}", want: `FILE:3: kubeReserved.gpu: cannot be reserved: only cpu, memory, ephemeral-storage and pid can`},
		"crash loop period out of range":          {file: "crashLoopBackOff: {maxContainerRestartPeriod: 10m}", want: `FILE:3: crashLoopBackOff.maxContainerRestartPeriod: 10m0s must be between 1s and 5m0s`},
		"crash loop period without gate": {file: "crashLoopBackOff: {maxContainerRestartPeriod: 1m}\nfeatureGates: {KubeletCrashLoopBackOffMax: false}",
			want: `FILE:3: crashLoopBackOff.maxContainerRestartPeriod: needs feature gate KubeletCrashLoopBackOffMax`},
		"enforcement without cgroup":       {file: "enforceNodeAllocatable: [pods, system-reserved]", want: `FILE:3: enforceNodeAllocatable: "system-reserved" needs systemReservedCgroup`},
		"critical pods period above total": {file: "shutdownGracePeriod: 10s\nshutdownGracePeriodCriticalPods: 20s", want: `FILE:4: shutdownGracePeriodCriticalPods: 20s must not be greater than shutdownGracePeriod, which is 10s`},
		"unclean log directory":            {file: "podLogsDir: /a/../b", want: `FILE:3: podLogsDir: "/a/../b" must be written as /b`},
		"invalid taint effect":             {file: "registerWithTaints: [{key: a, effect: Never}]", want: `FILE:3: registerWithTaints[0]: effect "Never" must be one of NoSchedule, PreferNoSchedule, NoExecute`},
		"unknown gate":                     {file: "featureGates: {NoSuch: true}", want: `FILE:3: featureGates.NoSuch: is not a feature gate`},
		"locked gate":                      {file: "featureGates: {NodeSwap: false}", want: `FILE:3: featureGates.NodeSwap: is locked to true`},
		"gate with unmet dependency": {file: "featureGates: {PodLevelResources: false, InPlacePodLevelResourcesVerticalScaling: false, PodLevelResourcesFixDefaulting: false, PodLevelResourcesFixKubeletQOSClass: true}",
			want: `FILE:3: featureGates.PodLevelResourcesFixKubeletQOSClass: PodLevelResourcesFixKubeletQOSClass is on, but needs PodLevelResources, which is off`},
		"dependency turned off": {file: "featureGates:\n  EnvFiles: true\n  ContainerRestartRules: false",
			want: `FILE:5: featureGates.ContainerRestartRules: RestartAllContainersOnContainerExits is on, but needs ContainerRestartRules, which is off`},
		"user namespaces not a multiple": {file: "userNamespaces: {idsPerPod: 1000}", want: `FILE:3: userNamespaces.idsPerPod: 1000 must be a multiple of 65536 and at most 4294967295`},
		"unknown cipher suite":           {file: "tlsCipherSuites: [X]", want: `FILE:3: tlsCipherSuites: Cipher suite X not supported or doesn't exist`},
		"runOnce":                        {file: "runOnce: true", want: `FILE:3: runOnce: is no longer possible`},
		"label not allowed": {args: []string{"--node-labels=kubernetes.io/x=1"},
			want: `--node-labels: kubernetes.io/x is not a label that a node may give itself: in the kubernetes.io and k8s.io namespaces these are the ones below kubelet.kubernetes.io and node.kubernetes.io, and beta.kubernetes.io/arch, beta.kubernetes.io/instance-type, beta.kubernetes.io/os, failure-domain.beta.kubernetes.io/region, failure-domain.beta.kubernetes.io/zone, kubernetes.io/arch, kubernetes.io/hostname, kubernetes.io/os, node.kubernetes.io/instance-type, topology.kubernetes.io/region, topology.kubernetes.io/zone`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			file := writeFiles(t, map[string]string{"kubelet.yaml": header + tc.file}) + "/kubelet.yaml"
			_, err := Load(append([]string{"--config=" + file}, tc.args...))
			if err == nil {
				t.Fatal("accepted")
			}
			if diff := cmp.Diff(tc.want, strings.ReplaceAll(err.Error(), file, "FILE")); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			var one *FieldError
			if !errors.As(err, &one) {
				t.Errorf("%T contains no FieldError", err)
			}
		})
	}
}

func TestInvalidCommandLines(t *testing.T) {
	for arg, want := range map[string]string{
		"--max-podz=3":                 "--max-podz is not a flag of the kubelet; did you mean --max-pods?",
		"--max-pods=x":                 `read command line: invalid argument "x" for "--max-pods" flag: strconv.ParseInt: parsing "x": invalid syntax`,
		"--address=here":               `read command line: invalid argument "here" for "--address" flag: "here" is not an IP address`,
		"--register-with-taints=a":     `read command line: invalid argument "a" for "--register-with-taints" flag: "a" is not a taint: want key=value:effect`,
		"--reserved-memory=0:cpu=1":    `read command line: invalid argument "0:cpu=1" for "--reserved-memory" flag: "0:cpu=1" is not a memory reservation, as in 0:memory=1Gi,hugepages-2Mi=100Mi: "cpu" is not a kind of memory`,
		"up":                           `read command line: "up" is neither a flag nor a flag's value`,
		"--feature-gates=NoSuch=true":  "--feature-gates: featureGates.NoSuch: is not a feature gate",
		"--config=/does/not/exist":     "read configuration: open /does/not/exist: no such file or directory",
		"--config-dir=/does/not/exist": "list drop-ins: lstat /does/not/exist: no such file or directory",
	} {
		if _, err := Load([]string{arg}); err == nil {
			t.Errorf("%s is accepted", arg)
		} else if diff := cmp.Diff(want, err.Error()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", arg, diff)
		}
	}
}

func TestCheckHost(t *testing.T) {
	c := mustLoad(t, "--fail-swap-on=true")
	got := c.Locate(c.CheckHost(Host{CgroupV2: false, Swap: true}))
	want := "--fail-swap-on: failSwapOn: is true and this host has swap; turn swap off or set it to false to run here\n" +
		"default: failCgroupV1: is true and this host has cgroup v1; set it to false to run here"
	if got == nil || !slices.Equal(slices.Sorted(strings.Lines(got.Error()+"\n")), slices.Sorted(strings.Lines(want+"\n"))) {
		t.Errorf("got %v\nwant %s", got, want)
	}
	if err := c.CheckHost(Host{CgroupV2: true}); err != nil {
		t.Errorf("valid host: %v", err)
	}
}

func FuzzConfigurationFile(f *testing.F) {
	for _, seed := range []string{
		header, header + "maxPods: 3\nevictionHard: {memory.available: 1Gi}\nregisterWithTaints: [{key: a}]\n",
		header + "logging: &a\n  options: *a\n", header + "? [a]\n: b\n", `{"kind":"KubeletConfiguration","port":1e3}`,
		header + "tracing: {samplingRatePerMillion: -1}\nreservedMemory: [{numaNode: 0, limits: {memory: 1}}]\n", "a: !!binary =", "<<: {a: 1}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, errs := parseDocument("fuzz", data)
		if d == nil {
			if len(errs) == 0 {
				t.Fatal("no document and no error")
			}
			return
		}
		// The strict decoder must accept every document that passes the check.
		var kc kubelet.KubeletConfiguration
		if err := decodeStrict("fuzz", d.values, &kc); err != nil {
			t.Fatalf("the strict decoder rejects a checked document: %v", err)
		}
		g := gatesWith(&kc, nil)
		applyDefaults(&kc, g)
		d.recordOrigins(Origins{})
		locate(validate(&kc, g), Origins{})
	})
}

// TestAliasBomb: CVE-2019-11253 by a configuration.
func TestAliasBomb(t *testing.T) {
	text := "kind: KubeletConfiguration\nt: &t " + strings.Repeat("x", 64<<10) + "\nall: [" + strings.TrimSuffix(strings.Repeat("*t, ", 2000), ", ") + "]\n"
	if _, errs := parseDocument("bomb.yaml", []byte(text)); len(errs) != 1 || !strings.Contains(errs[0].Error(), "the aliases of the document expand to more than") {
		t.Errorf("got %d errors: %.1000v", len(errs), errs)
	}
}
