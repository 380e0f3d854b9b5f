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
// the reference kubelet v1.37, so that either kubelet takes over the other's static pods: FNV-1a over a
// one-line dump of the defaulted pod, then "host:NODE" and "file:PATH", or "url:URL" alone. p must be
// defaulted and otherwise unchanged.
func staticUID(p *v1.Pod, origin Origin) types.UID {
	h := fnv.New128a()
	dump(h, reflect.ValueOf(p), true)
	if origin.Source == SourceFile {
		fmt.Fprintf(h, "host:%sfile:%s", origin.NodeName, origin.Location)
	} else {
		fmt.Fprintf(h, "url:%s", origin.Location)
	}
	return types.UID(hex.EncodeToString(h.Sum(nil)))
}

// dump writes v with the types of struct fields but not of slice and map elements.
// It includes unexported fields: the quantities "1" and "1000m" differ.
func dump(w io.Writer, v reflect.Value, withType bool) {
	if v.Kind() == reflect.Pointer {
		dumpPointer(w, v, withType)
		return
	}
	if withType {
		fmt.Fprintf(w, "(%s)", typeName(v.Type()))
	}
	switch v.Kind() {
	case reflect.Struct:
		dumpStruct(w, v)
	case reflect.Slice, reflect.Array:
		dumpList(w, v)
	case reflect.Map:
		dumpMap(w, v)
	case reflect.String:
		io.WriteString(w, v.String())
	case reflect.Bool:
		io.WriteString(w, strconv.FormatBool(v.Bool()))
	default:
		dumpNumber(w, v)
	}
}

func dumpPointer(w io.Writer, v reflect.Value, withType bool) {
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
	dump(w, v.Elem(), false)
}

func dumpStruct(w io.Writer, v reflect.Value) {
	io.WriteString(w, "{")
	for i := range v.NumField() {
		if i > 0 {
			io.WriteString(w, " ")
		}
		fmt.Fprintf(w, "%s:", v.Type().Field(i).Name)
		dump(w, v.Field(i), true)
	}
	io.WriteString(w, "}")
}

func dumpList(w io.Writer, v reflect.Value) {
	if v.Kind() == reflect.Slice && v.IsNil() {
		io.WriteString(w, "<nil>")
		return
	}
	io.WriteString(w, "[")
	for i := range v.Len() {
		if i > 0 {
			io.WriteString(w, " ")
		}
		dump(w, v.Index(i), false)
	}
	io.WriteString(w, "]")
}

// dumpMap sorts by key. Every map of a pod has strings for keys.
func dumpMap(w io.Writer, v reflect.Value) {
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
		dump(w, key, false)
		io.WriteString(w, ":")
		dump(w, v.MapIndex(key), false)
	}
	io.WriteString(w, "]")
}

func dumpNumber(w io.Writer, v reflect.Value) {
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
