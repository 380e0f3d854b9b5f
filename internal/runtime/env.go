package runtime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"swiftlet/internal/pod"
	"swiftlet/internal/why"
)

// Sources reads the objects that environment variables refer to.
type Sources interface {
	// ConfigMap and Secret return the API's NotFound error where the object does not exist.
	ConfigMap(ctx context.Context, namespace, name string) (*v1.ConfigMap, error)
	Secret(ctx context.Context, namespace, name string) (*v1.Secret, error)
	// Services lists a namespace's services; synced is false until they have been read.
	Services(namespace string) (services []*v1.Service, synced bool)
}

// EnvInput is what a container's environment depends on, in addition to Sources.
type EnvInput struct {
	Pod       *v1.Pod
	Container *v1.Container
	// PodIPs and HostIPs are in the order in which pod status shows them.
	PodIPs, HostIPs []string
	// Allocatable stands in for limits that a container does not have.
	Allocatable v1.ResourceList
	// VolumePath finds where a volume of the pod is mounted on the node. It may be nil
	// where no variable comes from a file.
	VolumePath func(volume string) (path string, ok bool)
}

// Environment resolves a container's variables: those of envFrom, then those of env in the
// order declared, then those of the cluster's services. Variables of env may refer to earlier
// ones and to services. Its errors have the reason CreateContainerConfigError.
func Environment(ctx context.Context, in EnvInput, from Sources) ([]EnvVar, error) {
	services, err := serviceEnvs(in.Pod, from)
	if err != nil {
		return nil, failed(ReasonContainerConfig, err)
	}
	e := environment{in: in, from: from, values: map[string]string{}, services: map[string]string{},
		configMaps: map[string]*v1.ConfigMap{}, secrets: map[string]*v1.Secret{}}
	for _, s := range services {
		e.services[s.Name] = s.Value
	}
	for _, source := range in.Container.EnvFrom {
		if err := e.addAll(ctx, source); err != nil {
			return nil, failed(ReasonContainerConfig, invalidEnvironment(err))
		}
	}
	for _, v := range in.Container.Env {
		value, ok, err := e.resolve(ctx, v)
		if err == nil && ok {
			err = e.set(v.Name, value)
		}
		if err != nil {
			return nil, failed(ReasonContainerConfig, invalidEnvironment(err))
		}
	}
	var all []EnvVar
	for _, name := range e.order {
		all = append(all, EnvVar{name, e.values[name]})
	}
	for _, s := range services {
		if _, own := e.values[s.Name]; !own {
			all = append(all, s)
		}
	}
	return all, nil
}

// invalidEnvironment gives an error a class, unless it has one.
func invalidEnvironment(err error) error {
	if class, _ := why.Of(err); class != why.Unclassified {
		return err
	}
	return why.Because(why.EnvironmentInvalid, "", err)
}

// environment is the environment of one container while Environment resolves it.
type environment struct {
	in         EnvInput
	from       Sources
	size       int      // of all variables that were set, as the kernel counts them: NAME=value and a zero byte
	order      []string // names as they first appeared
	values     map[string]string
	services   map[string]string
	configMaps map[string]*v1.ConfigMap
	secrets    map[string]*v1.Secret
}

// set fails if there is more than the kernel accepts: one object may be used many times. Variables that are
// replaced count as well, as each takes time.
func (e *environment) set(name, value string) error {
	if e.size += len(name) + len(value) + 2; e.size > maxTotal {
		return fmt.Errorf("expand variable %s: %w", name, tooLongError{maxTotal})
	}
	if _, known := e.values[name]; !known {
		e.order = append(e.order, name)
	}
	e.values[name] = value
	return nil
}

// addAll adds every key of a ConfigMap or Secret.
func (e *environment) addAll(ctx context.Context, source v1.EnvFromSource) error {
	data := map[string]string{}
	switch {
	case source.ConfigMapRef != nil:
		m, err := e.configMap(ctx, source.ConfigMapRef.Name, source.ConfigMapRef.Optional)
		if m == nil || err != nil {
			return err
		}
		data = m.Data
	case source.SecretRef != nil:
		s, err := e.secret(ctx, source.SecretRef.Name, source.SecretRef.Optional)
		if s == nil || err != nil {
			return err
		}
		for key, value := range s.Data {
			data[key] = string(value)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if err := e.set(source.Prefix+key, data[key]); err != nil {
			return err
		}
	}
	return nil
}

// resolve finds the value of one variable; ok is false where it is optional and absent.
func (e *environment) resolve(ctx context.Context, v v1.EnvVar) (value string, ok bool, err error) {
	of := v.ValueFrom
	switch {
	case v.Value != "":
		if value, err = Expand(v.Value, lookupIn(e.values, e.services)); err != nil {
			return "", false, fmt.Errorf("expand variable %s: %w", v.Name, err)
		}
		return value, true, nil
	case of == nil:
		return "", true, nil
	case of.FieldRef != nil:
		value, err = e.in.field(of.FieldRef)
		return value, true, err
	case of.ResourceFieldRef != nil:
		value, err = e.in.resourceField(of.ResourceFieldRef)
		return value, true, err
	case of.ConfigMapKeyRef != nil:
		return e.configMapKey(ctx, of.ConfigMapKeyRef)
	case of.SecretKeyRef != nil:
		return e.secretKey(ctx, of.SecretKeyRef)
	case of.FileKeyRef != nil:
		return e.in.fileKey(of.FileKeyRef)
	}
	return "", true, nil
}

func (e *environment) configMapKey(ctx context.Context, of *v1.ConfigMapKeySelector) (string, bool, error) {
	m, err := e.configMap(ctx, of.Name, of.Optional)
	if m == nil || err != nil {
		return "", false, err
	}
	value, ok := m.Data[of.Key]
	if !ok && !isTrue(of.Optional) {
		return "", false, why.MissingKey(of.Key, "ConfigMap", e.in.Pod.Namespace, of.Name,
			fmt.Errorf("couldn't find key %v in ConfigMap %v/%v", of.Key, e.in.Pod.Namespace, of.Name))
	}
	return value, ok, nil
}

func (e *environment) secretKey(ctx context.Context, of *v1.SecretKeySelector) (string, bool, error) {
	s, err := e.secret(ctx, of.Name, of.Optional)
	if s == nil || err != nil {
		return "", false, err
	}
	value, ok := s.Data[of.Key]
	if !ok && !isTrue(of.Optional) {
		return "", false, why.MissingKey(of.Key, "Secret", e.in.Pod.Namespace, of.Name,
			fmt.Errorf("couldn't find key %v in Secret %v/%v", of.Key, e.in.Pod.Namespace, of.Name))
	}
	return string(value), ok, nil
}

// configMap reads an object once. It returns nil without an error for one that is optional and
// does not exist.
func (e *environment) configMap(ctx context.Context, name string, optional *bool) (*v1.ConfigMap, error) {
	if m := e.configMaps[name]; m != nil {
		return m, nil
	}
	m, err := e.from.ConfigMap(ctx, e.in.Pod.Namespace, name)
	if err != nil {
		return nil, unlessOptional(err, optional)
	}
	e.configMaps[name] = m
	return m, nil
}

func (e *environment) secret(ctx context.Context, name string, optional *bool) (*v1.Secret, error) {
	if s := e.secrets[name]; s != nil {
		return s, nil
	}
	s, err := e.from.Secret(ctx, e.in.Pod.Namespace, name)
	if err != nil {
		return nil, unlessOptional(err, optional)
	}
	e.secrets[name] = s
	return s, nil
}

func unlessOptional(err error, optional *bool) error {
	if isTrue(optional) && apierrors.IsNotFound(err) {
		return nil
	}
	// The reference kubelet shows the API server's message alone.
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return &shownError{message: status.Status().Message, err: err}
	}
	return err
}

var errServicesNotSynced = why.Because(why.ServicesNotRead, "", errors.New("services have not yet been read at least once, cannot construct envvars"))

// serviceEnvs returns the variables of services: always those of the API server's, and those
// of the pod's namespace unless enableServiceLinks is false.
func serviceEnvs(p *v1.Pod, from Sources) ([]EnvVar, error) {
	if p.Spec.EnableServiceLinks == nil {
		return nil, errors.New("nil pod.spec.enableServiceLinks encountered, cannot construct envvars")
	}
	own, synced := from.Services(p.Namespace)
	common, _ := from.Services(v1.NamespaceDefault)
	all := slices.Concat(own, common)
	// A pod from the API server may depend on a service that the informer has not listed yet. A
	// static pod may be the API server itself, so it does not wait.
	if !synced && !pod.IsStatic(p) {
		return nil, errServicesNotSynced
	}
	return envsOf(visibleServices(all, p.Namespace, *p.Spec.EnableServiceLinks)), nil
}
