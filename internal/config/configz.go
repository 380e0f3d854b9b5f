package config

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	kubelet "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

// Configz returns the response of /configz.
func Configz(kc *kubelet.KubeletConfiguration) ([]byte, error) {
	text, err := json.Marshal(map[string]any{"kubeletconfig": masked(kc)})
	if err != nil {
		return nil, fmt.Errorf("encode configz: %w", err)
	}
	return text, nil
}

// Differences lists the fields whose values differ from those in the response of another kubelet's
// /configz.
func (c *Config) Differences(configz []byte) ([]string, error) {
	var other struct {
		Kubelet kubelet.KubeletConfiguration `json:"kubeletconfig"`
	}
	if err := json.Unmarshal(configz, &other); err != nil {
		return nil, fmt.Errorf("decode configz: %w", err)
	}
	theirs, err := toValues(&other.Kubelet)
	if err != nil {
		return nil, err
	}
	ours, err := toValues(masked(&c.Kubelet))
	if err != nil {
		return nil, err
	}
	return c.compare("", theirs, ours), nil
}

func (c *Config) compare(path string, theirs, ours map[string]any) (different []string) {
	names := maps.Clone(theirs)
	maps.Copy(names, ours)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		field := join(path, name)
		before, isMap := theirs[name].(map[string]any)
		after, areMaps := ours[name].(map[string]any)
		switch {
		case field == "apiVersion" || field == "kind":
		case isMap && areMaps:
			different = append(different, c.compare(field, before, after)...)
		case !reflect.DeepEqual(theirs[name], ours[name]):
			different = append(different, fmt.Sprintf("%s: %s: changes from %s to %s", c.Origins.Of(field), field, jsonText(theirs[name]), jsonText(ours[name])))
		}
	}
	return different
}

// masked hides the only secrets of the configuration, the headers for static pods.
func masked(kc *kubelet.KubeletConfiguration) *kubelet.KubeletConfiguration {
	if len(kc.StaticPodURLHeader) == 0 {
		return kc
	}
	kc = kc.DeepCopy()
	for name := range kc.StaticPodURLHeader {
		kc.StaticPodURLHeader[name] = []string{"<masked>"}
	}
	return kc
}

// Print writes the configuration as YAML that --config accepts, apart from masked secrets. A comment
// names the origin of each value that is not a default.
func (c *Config) Print(w io.Writer) error {
	values, err := toValues(masked(&c.Kubelet))
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "apiVersion: %s\nkind: %s\n", c.Kubelet.APIVersion, c.Kubelet.Kind)
	delete(values, "apiVersion")
	delete(values, "kind")
	return c.printFields(w, "", "", values)
}

func (c *Config) printFields(w io.Writer, indent, path string, values map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		value, field := values[name], join(path, name)
		if fields, ok := value.(map[string]any); ok && len(fields) > 0 {
			fmt.Fprintf(w, "%s%s:\n", indent, name)
			if err := c.printFields(w, indent+"  ", field, fields); err != nil {
				return err
			}
			continue
		}
		text, err := yaml.Marshal(map[string]any{name: value})
		if err != nil {
			return fmt.Errorf("print %s: %w", field, err)
		}
		lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
		if origin, ok := c.Origins[field]; ok {
			lines[0] += "  # " + origin.String()
		}
		for _, line := range lines {
			fmt.Fprintf(w, "%s%s\n", indent, line)
		}
	}
	return nil
}
