package pod

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	resourcehelper "k8s.io/component-helpers/resource"
)

// MetadataField returns a field of the pod's metadata by its path, for variables and files of the
// downward API. known is false for all other paths.
func MetadataField(p *v1.Pod, path string) (value string, known bool, err error) {
	if base, key, ok := Subscript(path); ok {
		return entry(p, path, base, key)
	}
	switch path {
	case "metadata.annotations":
		return lines(p.Annotations), true, nil
	case "metadata.labels":
		return lines(p.Labels), true, nil
	case "metadata.name":
		return p.Name, true, nil
	case "metadata.namespace":
		return p.Namespace, true, nil
	case "metadata.uid":
		return string(p.UID), true, nil
	}
	return "", false, nil
}

// entry returns one label or annotation, "" if it is not set.
func entry(p *v1.Pod, path, base, key string) (value string, known bool, err error) {
	var from map[string]string
	checked := key
	switch base {
	case "metadata.annotations":
		// Annotation keys may have upper case in their prefix, which IsQualifiedName forbids.
		from, checked = p.Annotations, strings.ToLower(key)
	case "metadata.labels":
		from = p.Labels
	default:
		return "", false, nil
	}
	if errs := validation.IsQualifiedName(checked); len(errs) > 0 {
		return "", true, fmt.Errorf("invalid key subscript in %s: %s", path, strings.Join(errs, ";"))
	}
	return from[key], true, nil
}

// Subscript splits metadata.labels['key'].
func Subscript(path string) (base, key string, ok bool) {
	inner, closed := strings.CutSuffix(path, "']")
	base, key, opened := strings.Cut(inner, "['")
	return base, key, closed && opened && base != ""
}

// lines formats key="value" pairs, sorted by key.
func lines(m map[string]string) string {
	all := make([]string, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		all = append(all, key+"="+strconv.Quote(m[key]))
	}
	return strings.Join(all, "\n")
}

// ResourceFieldValue returns a request or limit of c in units of the divisor, rounded up. A limit that
// is not set is the pod-level one, or else the node's allocatable.
func ResourceFieldValue(p *v1.Pod, c *v1.Container, of *v1.ResourceFieldSelector, allocatable v1.ResourceList) (string, error) {
	side, text, _ := strings.Cut(of.Resource, ".")
	name := v1.ResourceName(text)
	hugePages := strings.HasPrefix(text, v1.ResourceHugePagesPrefix)
	if name != v1.ResourceCPU && name != v1.ResourceMemory && name != v1.ResourceEphemeralStorage && !hugePages {
		return "", fmt.Errorf("unsupported container resource : %v", of.Resource)
	}
	var quantity resource.Quantity
	switch side {
	case "requests":
		quantity = c.Resources.Requests[name]
	case "limits":
		quantity = c.Resources.Limits[name]
		// Without a limit a container may not use huge pages.
		if quantity.IsZero() && !hugePages {
			quantity = implicitLimit(p, name, allocatable)
		}
	default:
		return "", fmt.Errorf("unsupported container resource : %v", of.Resource)
	}
	divisor := of.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	if name == v1.ResourceCPU {
		return quotient(quantity.MilliValue(), divisor.MilliValue()), nil
	}
	return quotient(quantity.Value(), divisor.Value()), nil
}

// implicitLimit returns the limit of a container that has none.
func implicitLimit(p *v1.Pod, name v1.ResourceName, allocatable v1.ResourceList) resource.Quantity {
	if resourcehelper.IsPodLevelLimitsSet(p) && resourcehelper.IsSupportedPodLevelResource(name) {
		if limit := p.Spec.Resources.Limits[name]; !limit.IsZero() {
			return limit
		}
	}
	return allocatable[name]
}

func quotient(value, divisor int64) string {
	whole := value / divisor
	if value%divisor > 0 {
		whole++
	}
	return strconv.FormatInt(whole, 10)
}
