package pod

import (
	"reflect"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateVolumes also returns the names that containers may mount.
func validateVolumes(volumes []v1.Volume, path *field.Path) (sets.Set[string], field.ErrorList) {
	names := sets.New[string]()
	var errs field.ErrorList
	for i := range volumes {
		v, path := &volumes[i], path.Index(i)
		if v.Name == "" {
			errs = append(errs, field.Required(path.Child("name"), ""))
		} else {
			errs = append(errs, invalid(path.Child("name"), v.Name, validation.IsDNS1123Label)...)
		}
		if names.Has(v.Name) {
			errs = append(errs, field.Duplicate(path.Child("name"), v.Name))
		}
		names.Insert(v.Name)
		if countSources(&v.VolumeSource) > 1 {
			errs = append(errs, field.Forbidden(path, "may not specify more than 1 volume type"))
		}
		errs = append(errs, validateVolume(v, path)...)
	}
	return names, errs
}

// countSources counts by reflection: VolumeSource is nothing but pointers, one per kind.
func countSources(s *v1.VolumeSource) int {
	count, v := 0, reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		if !v.Field(i).IsNil() {
			count++
		}
	}
	return count
}

func validateVolume(v *v1.Volume, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case v.HostPath != nil:
		errs = append(errs, validateHostPath(v.HostPath, path.Child("hostPath"))...)
	case v.EmptyDir != nil:
		if limit := v.EmptyDir.SizeLimit; limit != nil && limit.Sign() < 0 {
			errs = append(errs, field.Forbidden(path.Child("emptyDir", "sizeLimit"), "must be a valid resource quantity"))
		}
	case v.ConfigMap != nil:
		if v.ConfigMap.Name == "" {
			errs = append(errs, field.Required(path.Child("configMap", "name"), ""))
		}
		errs = append(errs, validateItems(v.ConfigMap.Items, path.Child("configMap", "items"))...)
		errs = append(errs, validateMode(v.ConfigMap.DefaultMode, path.Child("configMap", "defaultMode"))...)
	case v.Secret != nil:
		if v.Secret.SecretName == "" {
			errs = append(errs, field.Required(path.Child("secret", "secretName"), ""))
		}
		errs = append(errs, validateItems(v.Secret.Items, path.Child("secret", "items"))...)
		errs = append(errs, validateMode(v.Secret.DefaultMode, path.Child("secret", "defaultMode"))...)
	case v.DownwardAPI != nil:
		errs = append(errs, validateDownward(v.DownwardAPI.Items, path.Child("downwardAPI", "items"))...)
		errs = append(errs, validateMode(v.DownwardAPI.DefaultMode, path.Child("downwardAPI", "defaultMode"))...)
	case v.Projected != nil:
		errs = append(errs, validateMode(v.Projected.DefaultMode, path.Child("projected", "defaultMode"))...)
		for i, source := range v.Projected.Sources {
			path := path.Child("projected", "sources").Index(i)
			if source == (v1.VolumeProjection{}) {
				errs = append(errs, field.Required(path, "must specify a source"))
			}
			if source.DownwardAPI != nil {
				errs = append(errs, validateDownward(source.DownwardAPI.Items, path.Child("downwardAPI"))...)
			}
		}
	}
	return errs
}

func validateHostPath(h *v1.HostPathVolumeSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if h.Path == "" {
		errs = append(errs, field.Required(path.Child("path"), ""))
	}
	errs = append(errs, noBacksteps(path.Child("path"), h.Path)...)
	if h.Type != nil {
		errs = append(errs, oneOf(path.Child("type"), *h.Type, v1.HostPathUnset, v1.HostPathDirectoryOrCreate, v1.HostPathDirectory,
			v1.HostPathFileOrCreate, v1.HostPathFile, v1.HostPathSocket, v1.HostPathCharDev, v1.HostPathBlockDev)...)
	}
	return errs
}

func validateItems(items []v1.KeyToPath, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, item := range items {
		path := path.Index(i)
		if item.Key == "" {
			errs = append(errs, field.Required(path.Child("key"), ""))
		}
		errs = append(errs, validateFilePath(item.Path, path.Child("path"))...)
		errs = append(errs, validateMode(item.Mode, path.Child("mode"))...)
	}
	return errs
}

func validateDownward(items []v1.DownwardAPIVolumeFile, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, item := range items {
		path := path.Index(i)
		errs = append(errs, validateFilePath(item.Path, path.Child("path"))...)
		errs = append(errs, validateMode(item.Mode, path.Child("mode"))...)
		if (item.FieldRef == nil) == (item.ResourceFieldRef == nil) {
			errs = append(errs, field.Required(path, "one of fieldRef and resourceFieldRef is required"))
		}
	}
	return errs
}

// validateFilePath keeps a user's file name away from the volume's own bookkeeping, which
// lives in names that begin with "..".
func validateFilePath(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	errs := stayInside(path, name)
	if len(errs) == 0 && strings.HasPrefix(name, "..") {
		errs = append(errs, field.Invalid(path, name, "must not start with '..'"))
	}
	return errs
}

func validateMode(mode *int32, path *field.Path) field.ErrorList {
	if mode != nil && (*mode < 0 || *mode > 0o777) {
		return field.ErrorList{field.Invalid(path, *mode, "must be a number between 0 and 0777 (octal), both inclusive")}
	}
	return nil
}
