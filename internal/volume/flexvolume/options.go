package flexvolume

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/volume/plugin"
)

// source is a volume of either kind: inline or persistent.
type source struct {
	fsType    string
	options   map[string]string
	readOnly  bool
	secret    string
	namespace string // of the secret, "" for the pod's
}

func sourceOf(s plugin.Spec) source {
	if s.PV != nil {
		in := s.PV.Spec.FlexVolume
		from := source{fsType: in.FSType, options: in.Options, readOnly: s.ClaimReadOnly}
		if in.SecretRef != nil {
			from.secret, from.namespace = in.SecretRef.Name, in.SecretRef.Namespace
		}
		return from
	}
	in := s.Volume.FlexVolume
	from := source{fsType: in.FSType, options: in.Options, readOnly: in.ReadOnly}
	if in.SecretRef != nil {
		from.secret = in.SecretRef.Name
	}
	return from
}

// options are the JSON options of a volume for a driver. Those of the volume's spec take precedence.
func options(s plugin.Spec, extra map[string]string) string {
	from := sourceOf(s)
	all := map[string]string{
		"kubernetes.io/fsType":         from.fsType,
		"kubernetes.io/readwrite":      "rw",
		"kubernetes.io/pvOrVolumeName": s.Name(),
	}
	if from.readOnly {
		all["kubernetes.io/readwrite"] = "ro"
	}
	maps.Copy(all, extra)
	maps.Copy(all, from.options)
	text, err := json.Marshal(all)
	if err != nil {
		panic(err) // strings alone always encode
	}
	return string(text)
}

// podOptions are the options of the pod and the Secret.
func (d *driver) podOptions(ctx context.Context, r plugin.Request) (map[string]string, error) {
	all := map[string]string{
		"kubernetes.io/pod.name":            r.Pod.Name,
		"kubernetes.io/pod.namespace":       r.Pod.Namespace,
		"kubernetes.io/pod.uid":             string(r.Pod.UID),
		"kubernetes.io/serviceAccount.name": r.Pod.Spec.ServiceAccountName,
	}
	if group := r.FSGroup(); group != nil {
		all["kubernetes.io/mounterArgs.FsGroup"] = strconv.FormatInt(*group, 10)
	}
	from := sourceOf(r.Spec)
	if from.secret == "" {
		return all, nil
	}
	namespace := from.namespace
	if namespace == "" {
		namespace = r.Pod.Namespace
	}
	got, err := d.deps.Secret(ctx, namespace, from.secret)
	if err != nil {
		return nil, fmt.Errorf("couldn't get secret %s/%s err: %w", namespace, from.secret, err)
	}
	// The type check keeps volumes from passing any other Secret to the driver.
	if got.Type != v1.SecretType(d.name) {
		return nil, fmt.Errorf("couldn't get secret %s/%s err: cannot get secret of type %s", namespace, from.secret, d.name)
	}
	for key, value := range got.Data {
		all["kubernetes.io/secret/"+key] = base64.StdEncoding.EncodeToString(value)
	}
	return all, nil
}
