package runtime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/testing/protocmp"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestVerifyNonRoot(t *testing.T) {
	uid := func(n int64) ImageUser { return ImageUser{UID: &n} }
	const where = ` (pod: "p_ns(u)", container: c)`
	for name, c := range map[string]struct {
		spec  string
		image ImageUser
		want  string
	}{
		"no runAsNonRoot":                            {spec: `{containers: [{name: c}]}`},
		"container's user is not root":               {spec: `{securityContext: {runAsNonRoot: true}, containers: [{name: c, securityContext: {runAsUser: 5}}]}`, image: uid(0)},
		"pod's user is not root":                     {spec: `{securityContext: {runAsNonRoot: true, runAsUser: 5}, containers: [{name: c}]}`, image: uid(0)},
		"image's user is not root":                   {spec: `{securityContext: {runAsNonRoot: true}, containers: [{name: c}]}`, image: uid(7)},
		"container overrides the pod's runAsNonRoot": {spec: `{securityContext: {runAsNonRoot: true}, containers: [{name: c, securityContext: {runAsNonRoot: false}}]}`},
		"container's user is root":                   {spec: `{containers: [{name: c, securityContext: {runAsNonRoot: true, runAsUser: 0}}]}`, want: "container's runAsUser breaks non-root policy" + where},
		"image's user is root":                       {spec: `{securityContext: {runAsNonRoot: true}, containers: [{name: c}]}`, image: uid(0), want: "container has runAsNonRoot and image will run as root" + where},
		"image has no user":                          {spec: `{securityContext: {runAsNonRoot: true}, containers: [{name: c}]}`, want: "container has runAsNonRoot and image will run as root" + where},
		"image has a user name":                      {spec: `{securityContext: {runAsNonRoot: true}, containers: [{name: c}]}`, image: ImageUser{Name: "app"}, want: "container has runAsNonRoot and image has non-numeric user (app), cannot verify user is non-root" + where},
		"image has an invalid user id":               {spec: `{securityContext: {runAsNonRoot: true}, containers: [{name: c}]}`, image: uid(1 << 40), want: "container has runAsNonRoot and image has an invalid user id (1099511627776). (Must be 1-(2147483647)): must be between 0 and 2147483647, inclusive" + where},
	} {
		t.Run(name, func(t *testing.T) {
			p := testPod(t, c.spec)
			err := VerifyNonRoot(p, &p.Spec.Containers[0], c.image)
			if c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestContainerSecurity(t *testing.T) {
	seven := int64(7)
	for name, c := range map[string]struct {
		spec string
		edit func(*Input)
		cfg  func(*Config, *Deps)
		want string // beyond namespaces, masked and read-only paths, and Unconfined seccomp
	}{
		"no security context":    {spec: `{containers: [{name: c}]}`, want: `{"runAsUser": {}}`},
		"user id of the image":   {spec: `{containers: [{name: c}]}`, edit: func(in *Input) { in.ImageUser.UID = &seven }, want: `{"runAsUser": {"value": "7"}}`},
		"user name of the image": {spec: `{containers: [{name: c}]}`, edit: func(in *Input) { in.ImageUser.Name = "app" }, want: `{"runAsUsername": "app"}`},
		"container overrides pod": {
			spec: `{securityContext: {runAsUser: 1, runAsGroup: 2, seLinuxOptions: {level: pod}, seccompProfile: {type: RuntimeDefault}},
				containers: [{name: c, securityContext: {runAsUser: 3, seLinuxOptions: {level: own}, seccompProfile: {type: Localhost, localhostProfile: p/x.json}}}]}`,
			want: `{"runAsUser": {"value": "3"}, "runAsGroup": {"value": "2"}, "selinuxOptions": {"level": "own"},
				"seccomp": {"profileType": "Localhost", "localhostRef": "/var/lib/kubelet/seccomp/p/x.json"}}`,
		},
		"fsGroup, supplemental groups and volume groups": {
			spec: `{securityContext: {fsGroup: 1, supplementalGroups: [2, 3], supplementalGroupsPolicy: Strict}, containers: [{name: c}]}`,
			edit: func(in *Input) { in.VolumeGroups = []int64{4} },
			want: `{"runAsUser": {}, "supplementalGroups": ["1", "2", "3", "4"], "supplementalGroupsPolicy": "Strict"}`,
		},
		"seccompDefault applies without a profile": {
			spec: `{containers: [{name: c}]}`, cfg: func(c *Config, _ *Deps) { c.SeccompDefault = true },
			want: `{"runAsUser": {}, "seccomp": {"profileType": "RuntimeDefault"}}`,
		},
		"unconfined overrides seccompDefault": {
			spec: `{containers: [{name: c, securityContext: {seccompProfile: {type: Unconfined}}}]}`, cfg: func(c *Config, _ *Deps) { c.SeccompDefault = true },
			want: `{"runAsUser": {}}`,
		},
		"AppArmor profile of the pod": {
			spec: `{securityContext: {appArmorProfile: {type: RuntimeDefault}}, containers: [{name: c}]}`,
			want: `{"runAsUser": {}, "apparmor": {"profileType": "RuntimeDefault"}, "apparmorProfile": "runtime/default"}`,
		},
		"AppArmor profile by annotation": {
			spec: `{securityContext: {appArmorProfile: {type: Unconfined}}, containers: [{name: c}]}`,
			edit: func(in *Input) {
				in.Pod.Annotations = map[string]string{"container.apparmor.security.beta.kubernetes.io/c": "localhost/mine"}
			},
			want: `{"runAsUser": {}, "apparmor": {"profileType": "Localhost", "localhostRef": "mine"}, "apparmorProfile": "localhost/mine"}`,
		},
		"AppArmor profile of the container": {
			spec: `{containers: [{name: c, securityContext: {appArmorProfile: {type: Unconfined}}}]}`,
			want: `{"runAsUser": {}, "apparmor": {"profileType": "Unconfined"}, "apparmorProfile": "unconfined"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, c.cfg)
			p := testPod(t, c.spec)
			in := Input{Pod: p, Container: &p.Spec.Containers[0]}
			if c.edit != nil {
				c.edit(&in)
			}
			config, err := b.containerConfig(in)
			if err != nil {
				t.Fatal(err)
			}
			want := &runtimeapi.LinuxContainerSecurityContext{}
			if err := protojson.Unmarshal([]byte(c.want), want); err != nil {
				t.Fatal(err)
			}
			if want.Seccomp == nil {
				want.Seccomp = &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}
			}
			want.MaskedPaths, want.ReadonlyPaths = maskedPaths, readonlyPaths
			want.NamespaceOptions = &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_CONTAINER,
				UsernsOptions: &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_NODE}}
			if diff := gocmp.Diff(want, config.Linux.SecurityContext, protocmp.Transform()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestConfigErrors(t *testing.T) {
	for name, spec := range map[string]string{
		"no profile named":     `{containers: [{name: c, securityContext: {seccompProfile: {type: Localhost}}}]}`,
		"no apparmor named":    `{containers: [{name: c, securityContext: {appArmorProfile: {type: Localhost}}}]}`,
		"empty profile name":   `{containers: [{name: c, securityContext: {seccompProfile: {type: Localhost, localhostProfile: ""}}}]}`,
		"empty apparmor name":  `{containers: [{name: c, securityContext: {appArmorProfile: {type: Localhost, localhostProfile: ""}}}]}`,
		"no such apparmor":     `{containers: [{name: c, securityContext: {appArmorProfile: {type: Odd}}}]}`,
		"no such group policy": `{securityContext: {supplementalGroupsPolicy: Odd}, containers: [{name: c}]}`,
		"no user namespaces":   `{hostUsers: false, containers: [{name: c}]}`,
		"must not be root":     `{containers: [{name: c, securityContext: {runAsNonRoot: true}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			p := testPod(t, spec)
			_, err := newBench(t, nil).containerConfig(Input{Pod: p, Container: &p.Spec.Containers[0]})
			var known *Error
			if !errors.As(err, &known) || known.Reason != ReasonContainerConfig {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestNamespaces(t *testing.T) {
	mapped := &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_POD, Uids: []*runtimeapi.IDMapping{{HostId: 65536, Length: 65536}}}
	b := newBench(t, func(_ *Config, d *Deps) {
		d.UserNamespace = func(*v1.Pod) (*runtimeapi.UserNamespace, error) { return mapped, nil }
	})
	for spec, want := range map[string]string{
		`{}`:                  `{"pid": "CONTAINER", "usernsOptions": {"mode": "NODE"}}`,
		`{hostNetwork: true}`: `{"network": "NODE", "pid": "CONTAINER", "usernsOptions": {"mode": "NODE"}}`,
		`{hostIPC: true, hostPID: true, shareProcessNamespace: true}`: `{"ipc": "NODE", "pid": "NODE", "usernsOptions": {"mode": "NODE"}}`,
		`{shareProcessNamespace: true}`:                               `{"usernsOptions": {"mode": "NODE"}}`,
		`{hostUsers: false}`:                                          `{"pid": "CONTAINER", "usernsOptions": {"uids": [{"hostId": 65536, "length": 65536}]}}`,
	} {
		expected := &runtimeapi.NamespaceOption{}
		if err := protojson.Unmarshal([]byte(want), expected); err != nil {
			t.Fatal(err)
		}
		got, err := b.namespaces(testPod(t, spec))
		if diff := gocmp.Diff(expected, got, protocmp.Transform()); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got)\n%s", spec, err, diff)
		}
	}
	p := testPod(t, `{hostUsers: false, containers: [{name: c, terminationMessagePath: /log}]}`)
	config, err := b.containerConfig(Input{Pod: p, Container: &p.Spec.Containers[0]})
	if err != nil || len(config.Mounts) != 1 || config.Mounts[0].UidMappings[0].HostId != 65536 {
		t.Errorf("mounts are not mapped: %v %v", config.GetMounts(), err)
	}
}

func TestProcPaths(t *testing.T) {
	b := newBench(t, nil)
	for _, cpu := range []string{"cpu10", "cpu2", "cpufreq"} {
		if err := os.MkdirAll(filepath.Join(b.cfg.SysDir, "devices/system/cpu", cpu, "thermal_throttle"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	got := defaultMaskedPaths(b.cfg.SysDir)
	expect(t, "thermal counters", []string{"/sys/devices/system/cpu/cpu2/thermal_throttle", "/sys/devices/system/cpu/cpu10/thermal_throttle"}, got[len(maskedPaths):])
	unmasked := v1.UnmaskedProcMount
	if masked, readonly := b.procPaths(&unmasked); masked != nil || readonly != nil {
		t.Errorf("unmasked, and yet %v %v", masked, readonly)
	}
}

func TestRareContainerFields(t *testing.T) {
	p := testPod(t, `{containers: [{name: c, command: [a, "$(X)"], args: ["$(Y)"], workingDir: /w, stdin: true, stdinOnce: true, tty: true,
		lifecycle: {stopSignal: "SIGRTMIN+3"}, volumeMounts: [{name: v, mountPath: /etc/hosts}]}]}`)
	b := newBench(t, nil)
	devices := []*runtimeapi.Device{{HostPath: "/dev/null", ContainerPath: "/dev/x", Permissions: "r"}}
	got, err := b.containerConfig(Input{Pod: p, Container: &p.Spec.Containers[0], PodIPs: []string{"10.0.0.1"}, RestartCount: 3,
		Envs: []EnvVar{{"X", "1"}, {"X", "2"}}, Devices: devices, Annotations: map[string]string{"io.kubernetes.container.restartCount": "9", "device": "d"}})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "command", []string{"a", "2"}, got.Command)
	expect(t, "args", []string{"$(Y)"}, got.Args)
	if got.WorkingDir != "/w" || !got.Stdin || !got.StdinOnce || !got.Tty || got.StopSignal != runtimeapi.Signal_SIGNAL_SIGRTMINPLUS3 || len(got.Mounts) != 0 || len(got.Devices) != 1 {
		t.Errorf("config %+v", got)
	}
	if got.Annotations["device"] != "d" || got.Annotations["io.kubernetes.container.restartCount"] != "3" || got.LogPath != "c/3.log" {
		t.Errorf("annotations %v, log %s", got.Annotations, got.LogPath)
	}
}

func TestKubeletFilesAreRelabelled(t *testing.T) {
	p := testPod(t, `{containers: [{name: c, terminationMessagePath: /dev/termination-log}]}`)
	for _, labels := range []bool{true, false} {
		b := newBench(t, func(c *Config, _ *Deps) { c.SELinux = labels })
		got, err := b.containerConfig(Input{Pod: p, Container: &p.Spec.Containers[0], PodIPs: []string{"10.0.0.1"}})
		if err != nil {
			t.Fatal(err)
		}
		var shown []string
		for _, m := range got.Mounts {
			shown = append(shown, fmt.Sprintf("%s %v", m.ContainerPath, m.SelinuxRelabel))
		}
		expect(t, "relabelled", []string{fmt.Sprintf("/etc/hosts %v", labels), fmt.Sprintf("/dev/termination-log %v", labels)}, shown)
	}
}

func TestPortMappings(t *testing.T) {
	p := testPod(t, `{initContainers: [{name: i, ports: [{containerPort: 1}]}], containers: [
		{name: a, ports: [{name: x, containerPort: 1, protocol: UDP}, {name: x, containerPort: 2}, {containerPort: 3, hostIP: "::1"}, {containerPort: 3, hostIP: "::1"}, {containerPort: 3}]},
		{name: b, ports: [{name: x, containerPort: 4, protocol: SCTP, hostPort: 5}]}]}`)
	want := []*runtimeapi.PortMapping{
		{ContainerPort: 1, Protocol: runtimeapi.Protocol_UDP}, {ContainerPort: 3, HostIp: "::1"}, {ContainerPort: 3},
		{ContainerPort: 4, HostPort: 5, Protocol: runtimeapi.Protocol_SCTP},
	}
	if diff := gocmp.Diff(want, portMappings(p), protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
