package downwardapi

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// field reads a field of the pod that can change while it runs, or that names it.
// Addresses and the like are not among them: files are written before those are known.
func field(p *v1.Pod, path string) (string, error) {
	if base, key, ok := subscript(path); ok {
		return entry(p, path, base, key)
	}
	switch path {
	case "metadata.annotations":
		return lines(p.Annotations), nil
	case "metadata.labels":
		return lines(p.Labels), nil
	case "metadata.name":
		return p.Name, nil
	case "metadata.namespace":
		return p.Namespace, nil
	case "metadata.uid":
		return string(p.UID), nil
	}
	return "", fmt.Errorf("unsupported fieldPath: %v", path)
}

// entry reads one label or annotation; one that is not set is empty.
func entry(p *v1.Pod, path, base, key string) (string, error) {
	var from map[string]string
	checked := key
	switch base {
	case "metadata.annotations":
		// Annotation keys may have upper case in their prefix, which the check forbids.
		from, checked = p.Annotations, strings.ToLower(key)
	case "metadata.labels":
		from = p.Labels
	default:
		return "", fmt.Errorf("fieldPath %q does not support subscript", path)
	}
	if errs := validation.IsQualifiedName(checked); len(errs) > 0 {
		return "", fmt.Errorf("invalid key subscript in %s: %s", path, strings.Join(errs, ";"))
	}
	return from[key], nil
}

// subscript splits metadata.labels['key'].
func subscript(path string) (base, key string, ok bool) {
	inner, ok := strings.CutSuffix(path, "']")
	if !ok {
		return "", "", false
	}
	base, key, ok = strings.Cut(inner, "['")
	return base, key, ok && base != ""
}

// lines writes key="value" pairs in order, so that equal maps give equal files.
func lines(m map[string]string) string {
	all := make([]string, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		all = append(all, key+"="+strconv.Quote(m[key]))
	}
	return strings.Join(all, "\n")
}
