package runtime

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// Variables that refer to each other twice double with each variable: 40 of them would be 1 TiB.
func TestEnvironmentThatDoublesIsRejected(t *testing.T) {
	in := EnvInput{Pod: &v1.Pod{Spec: v1.PodSpec{EnableServiceLinks: ptr.To(true)}}, Container: &v1.Container{Name: "c", Env: []v1.EnvVar{{Name: "V0", Value: strings.Repeat("x", 1000)}}}}
	for n := range 40 {
		in.Container.Env = append(in.Container.Env, v1.EnvVar{Name: fmt.Sprintf("V%d", n+1), Value: fmt.Sprintf("$(V%d)$(V%d)", n, n)})
	}
	_, err := Environment(t.Context(), in, &fakeSources{synced: true})
	known := (*Error)(nil)
	if !errors.As(err, &known) || known.Reason != ReasonContainerConfig || !strings.Contains(known.Message, "expand variable V8: ") {
		t.Errorf("got %v, want an error for V8, the first value of more than 128 KiB", err)
	}
}

// Many variables that are short enough can still be too much together.
func TestEnvironmentThatIsTooLargeIsRejected(t *testing.T) {
	in := EnvInput{Pod: &v1.Pod{Spec: v1.PodSpec{EnableServiceLinks: ptr.To(true)}}, Container: &v1.Container{Name: "c", Env: []v1.EnvVar{{Name: "V", Value: strings.Repeat("x", 100<<10)}}}}
	for n := range 10000 {
		in.Container.Env = append(in.Container.Env, v1.EnvVar{Name: fmt.Sprintf("V%d", n), Value: "$(V)"})
	}
	_, err := Environment(t.Context(), in, &fakeSources{synced: true})
	if err == nil || !strings.Contains(err.Error(), "kernel accepts at most") {
		t.Errorf("got %v, want an error", err)
	}
}

func TestExpandedArgumentsAreBounded(t *testing.T) {
	envs := []EnvVar{{"V", strings.Repeat("x", 100<<10)}}
	for name, texts := range map[string][]string{
		"one_long_argument": {strings.Repeat("$(V)", 100000)},
		"many_arguments":    strings.Split(strings.Repeat("$(V) ", 100000), " "),
	} {
		if _, err := expandAll(texts, envs); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	got, err := expandAll([]string{"a", "$(V)"}, envs)
	if err != nil || len(got) != 2 || got[1] != envs[0].Value {
		t.Errorf("short arguments: %d of them, %v", len(got), err)
	}
}

// One object can be used many times, under other prefixes.
func TestEnvironmentFromObjectsIsBounded(t *testing.T) {
	empty := map[string]string{}
	for n := range 10000 {
		empty[fmt.Sprintf("V%d", n)] = ""
	}
	data := map[string]map[string]string{"ns/o": {"V": strings.Repeat("x", 1<<20)}, "ns/empty": empty}
	for name, source := range map[string]v1.EnvFromSource{
		"secrets":      {SecretRef: &v1.SecretEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "o"}}},
		"config_maps":  {ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "o"}}},
		"empty_values": {ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "empty"}}},
	} {
		in := EnvInput{Pod: &v1.Pod{Spec: v1.PodSpec{EnableServiceLinks: ptr.To(true)}}, Container: &v1.Container{Name: "c"}}
		in.Pod.Namespace = "ns"
		for n := range 100 {
			source.Prefix = fmt.Sprintf("P%d_", n)
			in.Container.EnvFrom = append(in.Container.EnvFrom, source)
		}
		_, err := Environment(t.Context(), in, &fakeSources{configMaps: data, secrets: data, synced: true})
		if err == nil || !strings.Contains(err.Error(), "kernel accepts at most") {
			t.Errorf("%s: got %v, want an error", name, err)
		}
	}
}

// Names count as well: the keys of an object are new names under each prefix, and take time under the same.
func TestNamesInEnvironmentAreBounded(t *testing.T) {
	data := map[string]string{}
	for n := range 10000 {
		data[fmt.Sprintf("%0250d", n)] = ""
	}
	for name, prefixes := range map[string]int{"new_names": 10, "same_names": 1} {
		in := EnvInput{Pod: &v1.Pod{Spec: v1.PodSpec{EnableServiceLinks: ptr.To(true)}}, Container: &v1.Container{Name: "c"}}
		in.Pod.Namespace = "ns"
		for n := range 10 {
			ref := &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "o"}}
			in.Container.EnvFrom = append(in.Container.EnvFrom, v1.EnvFromSource{Prefix: fmt.Sprintf("P%d_", n%prefixes), ConfigMapRef: ref})
		}
		_, err := Environment(t.Context(), in, &fakeSources{configMaps: map[string]map[string]string{"ns/o": data}, synced: true})
		if err == nil || !strings.Contains(err.Error(), "kernel accepts at most") {
			t.Errorf("%s: got %v, want an error", name, err)
		}
	}
}
