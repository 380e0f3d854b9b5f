// Package downwardapi mounts volumes with fields of the pod as files.
package downwardapi

import (
	"cmp"
	"context"
	"fmt"
	"path"

	v1 "k8s.io/api/core/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"swiftlet/internal/pod"
	"swiftlet/internal/volume/atomicdir"
	"swiftlet/internal/volume/content"
	"swiftlet/internal/volume/plugin"
)

// Name is the kind's qualified name.
const Name = "kubernetes.io/downward-api"

// New returns the plugin. allocatable is used for limits that a container does not have.
func New(allocatable func() v1.ResourceList, deps content.Deps) *content.Plugin {
	return content.New(content.Kind{
		Name:    Name,
		Medium:  v1.StorageMediumMemory,
		Handles: func(v *v1.Volume) bool { return v.DownwardAPI != nil },
		Collect: func(_ context.Context, r plugin.Request) (content.Files, error) {
			src := r.Volume.DownwardAPI
			payload, err := Collect(r.Pod, src.Items, src.DefaultMode, src.DefaultUser, allocatable())
			return content.Files{Payload: payload}, err
		},
	}, deps)
}

// field reads a metadata field of the pod. Addresses are not supported: the files are written
// before they are known.
func field(p *v1.Pod, path string) (string, error) {
	value, known, err := pod.MetadataField(p, path)
	if _, _, subscripted := pod.Subscript(path); subscripted && !known {
		return "", fmt.Errorf("fieldPath %q does not support subscript", path)
	}
	if !known {
		return "", fmt.Errorf("unsupported fieldPath: %v", path)
	}
	return value, err
}

// amount is the request or limit that the selector refers to.
func amount(p *v1.Pod, of *v1.ResourceFieldSelector, allocatable v1.ResourceList) (string, error) {
	c := pod.FindContainer(p, of.ContainerName)
	if c == nil {
		return "", fmt.Errorf("container %s not found", of.ContainerName)
	}
	return pod.ResourceFieldValue(p, c, of, allocatable)
}

// Collect returns the files of the items.
func Collect(p *v1.Pod, items []v1.DownwardAPIVolumeFile, defaultMode *int32, defaultUser *int64, allocatable v1.ResourceList) (atomicdir.Payload, error) {
	if defaultMode == nil {
		return nil, content.ErrNoDefaultMode
	}
	payload := atomicdir.Payload{}
	var failed []error
	for _, item := range items {
		file := atomicdir.File{Mode: *defaultMode, Owner: cmp.Or(item.User, defaultUser)}
		if item.Mode != nil {
			file.Mode = *item.Mode
		}
		var text string
		var err error
		switch {
		case item.FieldRef != nil:
			text, err = field(p, item.FieldRef.FieldPath)
		case item.ResourceFieldRef != nil:
			text, err = amount(p, item.ResourceFieldRef, allocatable)
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		file.Data = []byte(text)
		payload[path.Clean(item.Path)] = file
	}
	return payload, utilerrors.NewAggregate(failed)
}
