package config

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logs "k8s.io/component-base/logs/api/v1"
)

// checkType checks decoded JSON against a Go type. It reports all problems, while the decoder stops at
// the first, and deletes invalid values, so that the rest can be decoded and validated.
func checkType(t reflect.Type, path string, value any) (problems []problem) {
	addf := func(format string, args ...any) []problem {
		return append(problems, problem{field: path, message: fmt.Sprintf(format, args...)})
	}
	if value == nil { // null means unset
		return nil
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		if err := unmarshal(value, reflect.New(t).Interface()); err != nil {
			return addf("%s is not %s", jsonText(value), typeDescription(t))
		}
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return checkType(t.Elem(), path, value)
	case reflect.Struct:
		fields, ok := value.(map[string]any)
		if !ok {
			return addf("%s is not a set of fields", jsonText(value))
		}
		return checkStruct(t, path, fields)
	case reflect.Map:
		entries, ok := value.(map[string]any)
		if !ok {
			return addf("%s is not a map", jsonText(value))
		}
		for _, key := range slices.Sorted(maps.Keys(entries)) {
			problems = append(problems, checkEntry(t.Elem(), path, key, entries)...)
		}
		return problems
	case reflect.Slice:
		list, ok := value.([]any)
		if !ok {
			return addf("%s is not a list", jsonText(value))
		}
		for i, item := range list {
			problems = append(problems, checkType(t.Elem(), fmt.Sprintf("%s[%d]", path, i), item)...)
		}
		return problems
	}
	if !isScalar(t, value) {
		return addf("%s is not %s", jsonText(value), typeDescription(t))
	}
	return nil
}

func checkStruct(t reflect.Type, path string, fields map[string]any) (problems []problem) {
	known := jsonFields(t)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		field, ok := known[name]
		if !ok {
			problems = append(problems, problem{field: join(path, name), message: "is not a known field" + DidYouMean(name, maps.Keys(known)), class: unknownField})
			delete(fields, name)
			continue
		}
		problems = append(problems, checkEntry(field, path, name, fields)...)
	}
	return problems
}

// checkEntry checks one entry of a map or struct and deletes it if it is invalid. A list with an
// invalid item is deleted as a whole; of a map only invalid entries are deleted. An unknown field
// makes nothing around it invalid.
func checkEntry(t reflect.Type, path, key string, entries map[string]any) []problem {
	problems := checkType(t, join(path, key), entries[key])
	_, isMap := entries[key].(map[string]any)
	isInvalid := func(p problem) bool { return p.class == invalid && (!isMap || p.field == join(path, key)) }
	if slices.ContainsFunc(problems, isInvalid) {
		delete(entries, key)
	}
	return problems
}

// jsonFields maps JSON names to the types of a struct's fields.
func jsonFields(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for field := range structFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case name == "" && field.Anonymous:
			maps.Copy(fields, jsonFields(field.Type))
		case name == "":
			fields[field.Name] = field.Type
		default:
			fields[name] = field.Type
		}
	}
	return fields
}

func structFields(t reflect.Type) iter.Seq[reflect.StructField] {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && !yield(f) {
				return
			}
		}
	}
}

func isScalar(t reflect.Type, value any) bool {
	number, isNumber := value.(json.Number)
	var err error
	switch t.Kind() {
	case reflect.String:
		_, ok := value.(string)
		return ok
	case reflect.Bool:
		_, ok := value.(bool)
		return ok
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		_, err = strconv.ParseInt(number.String(), 10, t.Bits())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		_, err = strconv.ParseUint(number.String(), 10, t.Bits())
	case reflect.Float32, reflect.Float64:
		_, err = number.Float64()
	}
	return isNumber && err == nil
}

// typeDescription names a type in error messages.
func typeDescription(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[metav1.Duration](), reflect.TypeFor[logs.TimeOrMetaDuration]():
		return "a duration, such as 10s or 1m30s"
	case reflect.TypeFor[resource.Quantity](), reflect.TypeFor[resource.QuantityValue]():
		return "a quantity, such as 500m or 2Gi"
	case reflect.TypeFor[metav1.Time]():
		return "a time, such as 2026-01-31T12:00:00Z"
	}
	switch t.Kind() {
	case reflect.String:
		return "a string (quote it)"
	case reflect.Bool:
		return "true or false"
	case reflect.Int32:
		return "a whole number of 32 bits"
	case reflect.Uint32:
		return "a whole number of 32 bits, not negative"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	}
	return "a " + t.String()
}

// jsonText encodes the value as JSON and truncates it.
func jsonText(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return "the value"
	}
	if len(text) > 60 {
		return strings.ToValidUTF8(string(text[:57]), "") + "..."
	}
	return string(text)
}

func unmarshal(value, target any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, target)
}
