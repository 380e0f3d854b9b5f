package pod

import (
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
		if len(kindsOf(v)) > 1 {
			errs = append(errs, field.Forbidden(path, "may not specify more than 1 volume type"))
		}
		errs = append(errs, validateVolume(v, path)...)
	}
	return names, errs
}

func validateVolume(v *v1.Volume, path *field.Path) (errs field.ErrorList) {
	for _, k := range kindsOf(v) {
		if k.validate != nil {
			errs = append(errs, k.validate(v, path.Child(k.field))...)
		}
	}
	return errs
}

func validateHostPath(v *v1.Volume, path *field.Path) field.ErrorList {
	h := v.HostPath
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

func validateEmptyDir(v *v1.Volume, path *field.Path) field.ErrorList {
	if limit := v.EmptyDir.SizeLimit; limit != nil && limit.Sign() < 0 {
		return field.ErrorList{field.Forbidden(path.Child("sizeLimit"), "must be a valid resource quantity")}
	}
	return nil
}

func validateConfigMap(v *v1.Volume, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if v.ConfigMap.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	errs = append(errs, validateItems(v.ConfigMap.Items, path.Child("items"))...)
	return append(errs, validateMode(v.ConfigMap.DefaultMode, path.Child("defaultMode"))...)
}

func validateSecret(v *v1.Volume, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if v.Secret.SecretName == "" {
		errs = append(errs, field.Required(path.Child("secretName"), ""))
	}
	errs = append(errs, validateItems(v.Secret.Items, path.Child("items"))...)
	return append(errs, validateMode(v.Secret.DefaultMode, path.Child("defaultMode"))...)
}

func validateDownwardAPI(v *v1.Volume, path *field.Path) field.ErrorList {
	errs := validateDownward(v.DownwardAPI.Items, path.Child("items"))
	return append(errs, validateMode(v.DownwardAPI.DefaultMode, path.Child("defaultMode"))...)
}

func validateProjected(v *v1.Volume, path *field.Path) field.ErrorList {
	errs := validateMode(v.Projected.DefaultMode, path.Child("defaultMode"))
	for i, source := range v.Projected.Sources {
		path := path.Child("sources").Index(i)
		if source == (v1.VolumeProjection{}) {
			errs = append(errs, field.Required(path, "must specify a source"))
		}
		if source.DownwardAPI != nil {
			errs = append(errs, validateDownward(source.DownwardAPI.Items, path.Child("downwardAPI"))...)
		}
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

// validateFilePath rejects names that begin with "..", which the volume uses itself.
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
