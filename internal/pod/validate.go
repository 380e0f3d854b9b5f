package pod

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate checks a defaulted static pod for what the API server would reject, and for what would
// otherwise fail later in the runtime or in a mount. It reports all errors, each with its field path.
func Validate(p *v1.Pod) error {
	errs := validateMeta(p)
	errs = append(errs, validateSpec(&p.Spec, field.NewPath("spec"))...)
	// Some errors come from maps; the same pod must always have the same message.
	slices.SortStableFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return errs.ToAggregate()
}

func validateMeta(p *v1.Pod) field.ErrorList {
	path := field.NewPath("metadata")
	var errs field.ErrorList
	if p.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	} else {
		errs = append(errs, invalid(path.Child("name"), p.Name, validation.IsDNS1123Subdomain)...)
	}
	errs = append(errs, invalid(path.Child("namespace"), p.Namespace, validation.IsDNS1123Label)...)
	errs = append(errs, metavalidation.ValidateLabels(p.Labels, path.Child("labels"))...)
	return append(errs, apivalidation.ValidateAnnotations(p.Annotations, path.Child("annotations"))...)
}

func validateSpec(spec *v1.PodSpec, path *field.Path) field.ErrorList {
	volumes, errs := validateVolumes(spec.Volumes, path.Child("volumes"))
	errs = append(errs, validateContainers(spec, volumes, path)...)
	errs = append(errs,
		oneOf(path.Child("restartPolicy"), spec.RestartPolicy, v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever)...)
	errs = append(errs,
		oneOf(path.Child("dnsPolicy"), spec.DNSPolicy, v1.DNSClusterFirst, v1.DNSClusterFirstWithHostNet, v1.DNSDefault, v1.DNSNone)...)
	if spec.DNSPolicy == v1.DNSNone && (spec.DNSConfig == nil || len(spec.DNSConfig.Nameservers) == 0) {
		errs = append(errs, field.Required(path.Child("dnsConfig", "nameservers"), "must have at least one name server when dnsPolicy is None"))
	}
	if s := spec.ActiveDeadlineSeconds; s != nil && *s < 1 {
		errs = append(errs, field.Invalid(path.Child("activeDeadlineSeconds"), *s, "must be greater than 0"))
	}
	if spec.Hostname != "" {
		errs = append(errs, invalid(path.Child("hostname"), spec.Hostname, validation.IsDNS1123Label)...)
	}
	if spec.Subdomain != "" {
		errs = append(errs, invalid(path.Child("subdomain"), spec.Subdomain, validation.IsDNS1123Label)...)
	}
	if spec.SecurityContext != nil && spec.ShareProcessNamespace != nil && *spec.ShareProcessNamespace && spec.HostPID {
		errs = append(errs, field.Invalid(path.Child("shareProcessNamespace"), true, "may not be set together with hostPID"))
	}
	for i, alias := range spec.HostAliases {
		errs = append(errs, validation.IsValidIP(path.Child("hostAliases").Index(i).Child("ip"), alias.IP)...)
	}
	if len(spec.EphemeralContainers) > 0 {
		errs = append(errs, field.Forbidden(path.Child("ephemeralContainers"), "cannot be set on create"))
	}
	if spec.NodeName != "" {
		errs = append(errs, invalid(path.Child("nodeName"), spec.NodeName, validation.IsDNS1123Subdomain)...)
	}
	return errs
}

// validateContainers checks each container and what must be unique among them.
func validateContainers(spec *v1.PodSpec, volumes sets.Set[string], path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(spec.Containers) == 0 {
		errs = append(errs, field.Required(path.Child("containers"), ""))
	}
	names, hostPorts := sets.New[string](), sets.New[string]()
	each := func(list []v1.Container, path *field.Path, init bool) {
		for i := range list {
			c, path := &list[i], path.Index(i)
			errs = append(errs, validateContainer(c, volumes, path)...)
			if names.Has(c.Name) {
				errs = append(errs, field.Duplicate(path.Child("name"), c.Name))
			}
			names.Insert(c.Name)
			if init && !IsSidecar(c) {
				errs = append(errs, forbidInitFields(c, path)...)
				continue // it ends before the others start, so its host ports are free then
			}
			errs = append(errs, claimHostPorts(c, hostPorts, path)...)
		}
	}
	each(spec.InitContainers, path.Child("initContainers"), true)
	each(spec.Containers, path.Child("containers"), false)
	return errs
}

// forbidInitFields rejects probes and hooks of init containers that are no sidecars.
func forbidInitFields(c *v1.Container, path *field.Path) field.ErrorList {
	const why = "may not be set for init containers without restartPolicy=Always"
	var errs field.ErrorList
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"lifecycle", c.Lifecycle != nil && (c.Lifecycle.PostStart != nil || c.Lifecycle.PreStop != nil)},
		{"livenessProbe", c.LivenessProbe != nil},
		{"readinessProbe", c.ReadinessProbe != nil},
		{"startupProbe", c.StartupProbe != nil},
	} {
		if f.set {
			errs = append(errs, field.Forbidden(path.Child(f.name), why))
		}
	}
	return errs
}

// invalid returns the errors of one of apimachinery's string checks.
func invalid(path *field.Path, value string, check func(string) []string) field.ErrorList {
	var errs field.ErrorList
	for _, message := range check(value) {
		errs = append(errs, field.Invalid(path, value, message))
	}
	return errs
}

func oneOf[T ~string](path *field.Path, value T, allowed ...T) field.ErrorList {
	if slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}

func notNegative(path *field.Path, name v1.ResourceName, amount resource.Quantity) field.ErrorList {
	if amount.Sign() < 0 {
		return field.ErrorList{field.Invalid(path.Key(string(name)), amount.String(), apivalidation.IsNegativeErrorMsg)}
	}
	return nil
}
