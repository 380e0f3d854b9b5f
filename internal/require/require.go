// Package require checks the arguments of constructors.
package require

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Set returns an error that begins with the operation and names the values that are nil or
// the empty string. It returns nil if there are none.
func Set(operation string, values map[string]any) error {
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if isMissing(reflect.ValueOf(values[name])) {
			missing = append(missing, name)
		}
	}
	if missing == nil {
		return nil
	}
	return fmt.Errorf("%s: missing %s", operation, strings.Join(missing, ", "))
}

// isMissing decides by kind, because the zero value of a struct may be valid.
func isMissing(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Invalid: // a nil interface
		return true
	case reflect.Func, reflect.Pointer, reflect.Map, reflect.Slice, reflect.Chan, reflect.String:
		return v.IsZero()
	}
	return false
}
