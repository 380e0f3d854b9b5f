package csi

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	"github.com/container-storage-interface/spec/lib/go/csi"
	authv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/internal/volume/plugin"
)

// tokensKey is the key of service account tokens.
const tokensKey = "csi.storage.k8s.io/serviceAccount.tokens"

// addPublishContext adds the secrets, the pod info and the tokens that the CSIDriver object requires.
func (p *Plugin) addPublishContext(ctx context.Context, known *storagev1.CSIDriver, r plugin.Request, from source, request *csi.NodePublishVolumeRequest) (err error) {
	if request.Secrets, err = p.publishSecrets(ctx, r); err != nil {
		return err
	}
	request.VolumeContext = maps.Clone(from.attributes)
	if request.VolumeContext == nil {
		request.VolumeContext = map[string]string{}
	}
	if known == nil {
		return nil
	}
	if known.Spec.PodInfoOnMount != nil && *known.Spec.PodInfoOnMount {
		maps.Copy(request.VolumeContext, podInfo(r.Pod, from.ephemeral))
	}
	if len(known.Spec.TokenRequests) == 0 {
		return nil
	}
	tokens, err := p.tokens(ctx, r.Pod, known.Spec.TokenRequests)
	if err != nil {
		return errorf("mounter.SetUpAt failed to get service accoount token attributes: %w", err)
	}
	if known.Spec.ServiceAccountTokenInSecrets != nil && *known.Spec.ServiceAccountTokenInSecrets {
		request.Secrets[tokensKey] = tokens
	} else {
		request.VolumeContext[tokensKey] = tokens
	}
	return nil
}

func (p *Plugin) publishSecrets(ctx context.Context, r plugin.Request) (map[string]string, error) {
	ref := publishSecret(r)
	secrets, err := p.secret(ctx, ref)
	if err != nil {
		return nil, plugin.RetryWithin(fmt.Errorf("fetching NodePublishSecretRef %s/%s failed: %w", ref.Namespace, ref.Name, err), attachRetry)
	}
	return secrets, nil
}

func podInfo(p *v1.Pod, ephemeral bool) map[string]string {
	return map[string]string{
		"csi.storage.k8s.io/pod.name":            p.Name,
		"csi.storage.k8s.io/pod.namespace":       p.Namespace,
		"csi.storage.k8s.io/pod.uid":             string(p.UID),
		"csi.storage.k8s.io/serviceAccount.name": p.Spec.ServiceAccountName,
		"csi.storage.k8s.io/ephemeral":           strconv.FormatBool(ephemeral),
	}
}

// tokens are bound to the pod, one for each audience of the driver.
func (p *Plugin) tokens(ctx context.Context, pod *v1.Pod, requested []storagev1.TokenRequest) (string, error) {
	tokens := map[string]authv1.TokenRequestStatus{}
	for _, w := range requested {
		request := &authv1.TokenRequest{Spec: authv1.TokenRequestSpec{
			Audiences:         []string{},
			ExpirationSeconds: w.ExpirationSeconds,
			BoundObjectRef:    &authv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
		}}
		if w.Audience != "" {
			request.Spec.Audiences = []string{w.Audience}
		}
		got, err := p.deps.Tokens.Get(ctx, pod.Namespace, pod.Spec.ServiceAccountName, request)
		if err != nil {
			return "", err
		}
		tokens[w.Audience] = authv1.TokenRequestStatus{Token: got.Value, ExpirationTimestamp: metav1.NewTime(got.ExpiresAt)}
	}
	text, err := json.Marshal(tokens)
	return string(text), err
}
