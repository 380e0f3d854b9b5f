package pod

import (
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// staticUID returns the UID of a static pod, which depends on its content and origin. It equals that of
// the reference kubelet, so that either kubelet takes over the other's static pods: FNV-1a over a
// one-line dump of the defaulted pod, then "host:NODE" and "file:PATH", or "url:URL" alone. The dump
// depends on the release, as it names all fields of the API; layouts is nil for v1.37. p must be
// defaulted and otherwise unchanged.
func staticUID(p *v1.Pod, origin Origin, layouts map[string][]string) types.UID {
	h := fnv.New128a()
	d := dumper{Writer: h, layouts: layouts, spec: reflect.ValueOf(p.Spec)}
	d.dump(reflect.ValueOf(p), true)
	if origin.Source == SourceFile {
		fmt.Fprintf(h, "host:%sfile:%s", origin.NodeName, origin.Location)
	} else {
		fmt.Fprintf(h, "url:%s", origin.Location)
	}
	return types.UID(hex.EncodeToString(h.Sum(nil)))
}

// dumper writes a pod as one line of text.
type dumper struct {
	io.Writer
	layouts map[string][]string // field names of structs that had other fields in an earlier release
	spec    reflect.Value       // the pod's spec
}

// dump writes v with the types of struct fields but not of slice and map elements.
// It includes unexported fields: the quantities "1" and "1000m" differ.
func (w *dumper) dump(v reflect.Value, withType bool) {
	if v.Kind() == reflect.Pointer {
		w.pointer(v, withType)
		return
	}
	if withType {
		fmt.Fprintf(w, "(%s)", typeName(v.Type()))
	}
	switch v.Kind() {
	case reflect.Struct:
		w.structure(v)
	case reflect.Slice, reflect.Array:
		w.list(v)
	case reflect.Map:
		w.mapping(v)
	case reflect.String:
		io.WriteString(w, v.String())
	case reflect.Bool:
		io.WriteString(w, strconv.FormatBool(v.Bool()))
	default:
		w.number(v)
	}
}

func (w *dumper) pointer(v reflect.Value, withType bool) {
	switch {
	case withType:
		fmt.Fprintf(w, "(%s)", typeName(v.Type()))
	case !v.IsNil():
		io.WriteString(w, "<*>")
	}
	if v.IsNil() {
		io.WriteString(w, "<nil>")
		return
	}
	w.dump(v.Elem(), false)
}

func (w *dumper) structure(v reflect.Value) {
	io.WriteString(w, "{")
	layout, older := w.layouts[typeName(v.Type())]
	if !older {
		for field := range v.Type().Fields() {
			layout = append(layout, field.Name)
		}
	}
	for i, name := range layout {
		if i > 0 {
			io.WriteString(w, " ")
		}
		w.field(v, name)
	}
	io.WriteString(w, "}")
}

// field writes a field of a struct. Fields of the spec were fields of its security context before v1.37.
// A name with a type is that of a field that no longer exists, and that no manifest here can have.
func (w *dumper) field(v reflect.Value, name string) {
	name, removed, _ := strings.Cut(name, "=")
	fmt.Fprintf(w, "%s:", name)
	if removed != "" {
		fmt.Fprintf(w, "(%s)<nil>", removed)
		return
	}
	value := v.FieldByName(name)
	if !value.IsValid() {
		value = w.spec.FieldByName(name)
	}
	w.dump(value, true)
}

func (w *dumper) list(v reflect.Value) {
	if v.Kind() == reflect.Slice && v.IsNil() {
		io.WriteString(w, "<nil>")
		return
	}
	io.WriteString(w, "[")
	for i := range v.Len() {
		if i > 0 {
			io.WriteString(w, " ")
		}
		w.dump(v.Index(i), false)
	}
	io.WriteString(w, "]")
}

// mapping sorts by key. Every map of a pod has strings for keys.
func (w *dumper) mapping(v reflect.Value) {
	if v.IsNil() {
		io.WriteString(w, "<nil>")
		return
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	io.WriteString(w, "map[")
	for i, key := range keys {
		if i > 0 {
			io.WriteString(w, " ")
		}
		w.dump(key, false)
		io.WriteString(w, ":")
		w.dump(v.MapIndex(key), false)
	}
	io.WriteString(w, "]")
}

func (w *dumper) number(v reflect.Value) {
	switch {
	case v.CanInt():
		io.WriteString(w, strconv.FormatInt(v.Int(), 10))
	case v.CanUint():
		io.WriteString(w, strconv.FormatUint(v.Uint(), 10))
	}
}

var coreTypes = reflect.TypeFor[v1.Pod]().PkgPath()

// typeName writes core/v1 as "core", the reference kubelet's package of the same types.
func typeName(t reflect.Type) string {
	if t.Name() != "" {
		if t.PkgPath() == coreTypes {
			return "core." + t.Name()
		}
		return t.String()
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + typeName(t.Elem())
	case reflect.Slice:
		return "[]" + typeName(t.Elem())
	case reflect.Map:
		return "map[" + typeName(t.Key()) + "]" + typeName(t.Elem())
	default:
		return t.String()
	}
}
