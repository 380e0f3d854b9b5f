package pod

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateContainer(c *v1.Container, volumes sets.Set[string], path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	} else {
		errs = append(errs, invalid(path.Child("name"), c.Name, validation.IsDNS1123Label)...)
	}
	switch {
	case c.Image == "":
		errs = append(errs, field.Required(path.Child("image"), ""))
	case strings.TrimSpace(c.Image) != c.Image:
		errs = append(errs, field.Invalid(path.Child("image"), c.Image, "must not have leading or trailing whitespace"))
	}
	errs = append(errs,
		oneOf(path.Child("imagePullPolicy"), c.ImagePullPolicy, v1.PullAlways, v1.PullIfNotPresent, v1.PullNever)...)
	errs = append(errs,
		oneOf(path.Child("terminationMessagePolicy"), c.TerminationMessagePolicy, v1.TerminationMessageReadFile, v1.TerminationMessageFallbackToLogsOnError)...)
	errs = append(errs, validatePorts(c.Ports, path.Child("ports"))...)
	errs = append(errs, validateEnv(c, path)...)
	errs = append(errs, validateMounts(c, volumes, path)...)
	errs = append(errs, validateResources(&c.Resources, path.Child("resources"))...)
	return append(errs, validateHandlers(c, path)...)
}

func validatePorts(ports []v1.ContainerPort, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, port := range ports {
		path := path.Index(i)
		if port.Name != "" {
			errs = append(errs, invalid(path.Child("name"), port.Name, validation.IsValidPortName)...)
			if names.Has(port.Name) {
				errs = append(errs, field.Duplicate(path.Child("name"), port.Name))
			}
			names.Insert(port.Name)
		}
		if port.ContainerPort == 0 {
			errs = append(errs, field.Required(path.Child("containerPort"), ""))
		} else {
			errs = append(errs, portNumber(path.Child("containerPort"), port.ContainerPort)...)
		}
		if port.HostPort != 0 {
			errs = append(errs, portNumber(path.Child("hostPort"), port.HostPort)...)
		}
		errs = append(errs, oneOf(path.Child("protocol"), port.Protocol, v1.ProtocolTCP, v1.ProtocolUDP, v1.ProtocolSCTP)...)
	}
	return errs
}

func portNumber(path *field.Path, port int32) field.ErrorList {
	var errs field.ErrorList
	for _, message := range validation.IsValidPortNum(int(port)) {
		errs = append(errs, field.Invalid(path, port, message))
	}
	return errs
}

// claimHostPorts finds host ports that two containers of a pod use.
func claimHostPorts(c *v1.Container, claimed sets.Set[string], path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, port := range c.Ports {
		if port.HostPort == 0 {
			continue
		}
		key := fmt.Sprintf("%s/%s/%d", port.Protocol, port.HostIP, port.HostPort)
		if claimed.Has(key) {
			errs = append(errs, field.Duplicate(path.Child("ports").Index(i).Child("hostPort"), key))
		}
		claimed.Insert(key)
	}
	return errs
}

func validateEnv(c *v1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, env := range c.Env {
		path := path.Child("env").Index(i)
		if env.Name == "" {
			errs = append(errs, field.Required(path.Child("name"), ""))
		} else {
			errs = append(errs, invalid(path.Child("name"), env.Name, validation.IsRelaxedEnvVarName)...)
		}
		if env.ValueFrom != nil && env.Value != "" {
			errs = append(errs, field.Invalid(path.Child("valueFrom"), "", "may not be specified when `value` is not empty"))
		}
		if env.ValueFrom != nil && *env.ValueFrom == (v1.EnvVarSource{}) {
			errs = append(errs, field.Invalid(path.Child("valueFrom"), "", "must specify one source"))
		}
	}
	for i, from := range c.EnvFrom {
		if (from.ConfigMapRef == nil) == (from.SecretRef == nil) {
			errs = append(errs, field.Invalid(path.Child("envFrom").Index(i), "", "must specify one of: `configMapRef` or `secretRef`"))
		}
	}
	return errs
}

func validateMounts(c *v1.Container, volumes sets.Set[string], path *field.Path) field.ErrorList {
	var errs field.ErrorList
	points := sets.New[string]()
	for i, mount := range c.VolumeMounts {
		path := path.Child("volumeMounts").Index(i)
		switch {
		case mount.Name == "":
			errs = append(errs, field.Required(path.Child("name"), ""))
		case !volumes.Has(mount.Name):
			errs = append(errs, field.NotFound(path.Child("name"), mount.Name))
		}
		switch {
		case mount.MountPath == "":
			errs = append(errs, field.Required(path.Child("mountPath"), ""))
		case points.Has(mount.MountPath):
			errs = append(errs, field.Invalid(path.Child("mountPath"), mount.MountPath, "must be unique"))
		}
		points.Insert(mount.MountPath)
		if mount.SubPath != "" && mount.SubPathExpr != "" {
			errs = append(errs, field.Invalid(path.Child("subPathExpr"), mount.SubPathExpr, "subPathExpr and subPath are mutually exclusive"))
		}
		for name, sub := range map[string]string{"subPath": mount.SubPath, "subPathExpr": mount.SubPathExpr} {
			errs = append(errs, stayInside(path.Child(name), sub)...)
		}
	}
	for i, device := range c.VolumeDevices {
		if !volumes.Has(device.Name) {
			errs = append(errs, field.NotFound(path.Child("volumeDevices").Index(i).Child("name"), device.Name))
		}
	}
	return errs
}

// stayInside rejects paths that leave their volume.
func stayInside(path *field.Path, sub string) field.ErrorList {
	if strings.HasPrefix(sub, "/") {
		return field.ErrorList{field.Invalid(path, sub, "must be a relative path")}
	}
	return noBacksteps(path, sub)
}

func noBacksteps(path *field.Path, value string) field.ErrorList {
	for part := range strings.SplitSeq(value, "/") {
		if part == ".." {
			return field.ErrorList{field.Invalid(path, value, "must not contain '..'")}
		}
	}
	return nil
}

func validateResources(r *v1.ResourceRequirements, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name, limit := range r.Limits {
		errs = append(errs, notNegative(path.Child("limits"), name, limit)...)
	}
	for name, request := range r.Requests {
		errs = append(errs, notNegative(path.Child("requests"), name, request)...)
		if limit, ok := r.Limits[name]; ok && request.Cmp(limit) > 0 {
			errs = append(errs, field.Invalid(path.Child("requests"), request.String(),
				fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String())))
		}
	}
	return errs
}

func validateHandlers(c *v1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, probe := range []struct {
		name  string
		probe *v1.Probe
	}{{"livenessProbe", c.LivenessProbe}, {"readinessProbe", c.ReadinessProbe}, {"startupProbe", c.StartupProbe}} {
		if probe.probe != nil {
			errs = append(errs, validateProbe(probe.probe, path.Child(probe.name))...)
			if probe.name != "readinessProbe" && probe.probe.SuccessThreshold != 1 {
				errs = append(errs, field.Invalid(path.Child(probe.name, "successThreshold"), probe.probe.SuccessThreshold, "must be 1"))
			}
		}
	}
	if c.Lifecycle == nil {
		return errs
	}
	for name, hook := range map[string]*v1.LifecycleHandler{"postStart": c.Lifecycle.PostStart, "preStop": c.Lifecycle.PreStop} {
		if hook == nil {
			continue
		}
		path := path.Child("lifecycle", name)
		handler := v1.ProbeHandler{Exec: hook.Exec, HTTPGet: hook.HTTPGet, TCPSocket: hook.TCPSocket}
		errs = append(errs, validateHandler(&handler, hook.Sleep != nil, path)...)
	}
	return errs
}

func validateProbe(p *v1.Probe, path *field.Path) field.ErrorList {
	errs := validateHandler(&p.ProbeHandler, false, path)
	for name, seconds := range map[string]int32{
		"initialDelaySeconds": p.InitialDelaySeconds, "timeoutSeconds": p.TimeoutSeconds, "periodSeconds": p.PeriodSeconds,
		"successThreshold": p.SuccessThreshold, "failureThreshold": p.FailureThreshold,
	} {
		if seconds < 0 {
			errs = append(errs, field.Invalid(path.Child(name), seconds, apivalidation.IsNegativeErrorMsg))
		}
	}
	if s := p.TerminationGracePeriodSeconds; s != nil && *s < 1 {
		errs = append(errs, field.Invalid(path.Child("terminationGracePeriodSeconds"), *s, "must be greater than 0"))
	}
	return errs
}

// validateHandler requires exactly one handler, and a port for those that need one.
func validateHandler(h *v1.ProbeHandler, sleep bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	count := 0
	if sleep {
		count++
	}
	if h.Exec != nil {
		count++
		if len(h.Exec.Command) == 0 {
			errs = append(errs, field.Required(path.Child("exec", "command"), ""))
		}
	}
	if h.HTTPGet != nil {
		count++
		errs = append(errs, validatePort(path.Child("httpGet", "port"), h.HTTPGet.Port)...)
	}
	if h.TCPSocket != nil {
		count++
		errs = append(errs, validatePort(path.Child("tcpSocket", "port"), h.TCPSocket.Port)...)
	}
	if h.GRPC != nil {
		count++
		errs = append(errs, portNumber(path.Child("grpc", "port"), h.GRPC.Port)...)
	}
	switch {
	case count == 0:
		errs = append(errs, field.Required(path, "must specify a handler type"))
	case count > 1:
		errs = append(errs, field.Forbidden(path, "may not specify more than 1 handler type"))
	}
	return errs
}

func validatePort(path *field.Path, port intstr.IntOrString) field.ErrorList {
	if port.Type == intstr.String {
		return invalid(path, port.StrVal, validation.IsValidPortName)
	}
	return portNumber(path, port.IntVal)
}
