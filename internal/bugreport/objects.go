package bugreport

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// objectFields are the fields of Pods and Nodes that are kept. Others are redacted with all below them, and
// what they contained is learned. None of them is a map with keys that a user chooses: those are below.
var objectFields = fields(`
	apiVersion kind items metadata spec status
	name namespace uid generateName creationTimestamp deletionTimestamp deletionGracePeriodSeconds resourceVersion generation
	ownerReferences controller blockOwnerDeletion finalizers
	containers initContainers ephemeralContainers targetContainerName image imagePullPolicy workingDir restartPolicy restartPolicyRules exitCodes operator values
	ports containerPort hostPort hostIP protocol env envFrom valueFrom fieldRef fieldPath resourceFieldRef resource divisor containerName
	secretKeyRef configMapKeyRef secretRef configMapRef key optional prefix
	resources claims request volumeMounts volumeDevices mountPath devicePath subPath mountPropagation readOnly recursiveReadOnly
	livenessProbe readinessProbe startupProbe lifecycle postStart preStop exec httpGet tcpSocket grpc sleep seconds service scheme host port
	initialDelaySeconds timeoutSeconds periodSeconds successThreshold failureThreshold terminationGracePeriodSeconds
	terminationMessagePath terminationMessagePolicy stdin stdinOnce tty
	securityContext privileged runAsUser runAsGroup runAsNonRoot readOnlyRootFilesystem allowPrivilegeEscalation procMount capabilities add drop
	seccompProfile appArmorProfile localhostProfile type fsGroup fsGroupChangePolicy supplementalGroups supplementalGroupsPolicy sysctls seLinuxOptions user role level
	volumes configMap secret secretName projected sources serviceAccountToken expirationSeconds downwardAPI clusterTrustBundle items defaultMode mode
	emptyDir medium sizeLimit hostPath persistentVolumeClaim claimName csi driver fsType ephemeral nfs iscsi fc image reference pullPolicy
	nodeName serviceAccountName automountServiceAccountToken hostNetwork hostPID hostIPC hostUsers hostname subdomain setHostnameAsFQDN shareProcessNamespace
	dnsPolicy dnsConfig nameservers searches enableServiceLinks priority priorityClassName preemptionPolicy runtimeClassName schedulerName activeDeadlineSeconds
	tolerations effect tolerationSeconds readinessGates conditionType schedulingGates topologySpreadConstraints maxSkew topologyKey whenUnsatisfiable os
	imagePullSecrets resourceClaims resourceClaimName resourceClaimTemplateName
	conditions status reason message lastProbeTime lastTransitionTime lastHeartbeatTime observedGeneration phase podIP podIPs ip hostIPs startTime qosClass resize nominatedNodeName
	containerStatuses initContainerStatuses ephemeralContainerStatuses containerID imageID ready started restartCount state lastState waiting running terminated
	startedAt finishedAt exitCode signal allocatedResourcesStatus resourceClaimStatuses
	podCIDR podCIDRs providerID unschedulable taints addresses address daemonEndpoints kubeletEndpoint Port
	nodeInfo machineID systemUUID bootID kernelVersion osImage containerRuntimeVersion kubeletVersion operatingSystem architecture swap capacity
	images names sizeBytes volumesInUse volumesAttached runtimeHandlers features config active assigned lastKnownGood error`)

// quantityFields are maps with the names of resources or labels. They are kept.
var quantityFields = fields("labels limits requests overhead capacity allocatable allocatedResources nodeSelector")

// plainAnnotations are those whose values are kept.
var plainAnnotations = fields(`kubernetes.io/config.source kubernetes.io/config.seen kubernetes.io/config.hash kubernetes.io/config.mirror
	volumes.kubernetes.io/controller-managed-attach-detach node.alpha.kubernetes.io/ttl swiftlet.dev/version`)

func fields(names string) map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(names) {
		set[name] = true
	}
	return set
}

// objects returns Pods or Nodes, as JSON, without what may be a secret. It learns of all of them before it
// searches the texts of any.
func (r *redactor) objects(text []byte) ([]byte, error) {
	return r.rewrite(text, func(v any) any { return r.texts(r.object("", v)) })
}

// document returns a JSON document whose texts have no secrets.
func (r *redactor) document(text []byte) ([]byte, error) { return r.rewrite(text, r.texts) }

func (r *redactor) rewrite(text []byte, change func(any) any) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return nil, fmt.Errorf("decode response: %w", err)
	}
	out, err := json.MarshalIndent(change(v), "", " ")
	if err != nil {
		return nil, fmt.Errorf("encode entry: %w", err)
	}
	return append(out, '\n'), nil
}

// object drops what is not kept of the value of a field.
func (r *redactor) object(field string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			v[name] = r.field(field, name, value)
		}
		return v
	case []any:
		for i := range v {
			v[i] = r.object(field, v[i])
		}
		return v
	}
	return v
}

// field drops what is not kept of a field of an object that is the value of the field parent.
func (r *redactor) field(parent, name string, value any) any {
	switch {
	case name == "annotations":
		return r.annotations(value)
	case name == "command":
		return r.command(value)
	case quantityFields[name]:
		return value
	case parent == "terminated" && name == "message", !objectFields[name]: // the program's own text
		return r.drop(value)
	}
	return r.object(name, value)
}

func (r *redactor) annotations(v any) any {
	all, ok := v.(map[string]any)
	if !ok {
		return r.drop(v)
	}
	for name, value := range all {
		if !plainAnnotations[name] {
			all[name] = r.drop(value)
		}
	}
	return all
}

// command keeps the program, which errors of the runtime are about, and not its arguments.
func (r *redactor) command(v any) any {
	words, ok := v.([]any)
	if !ok {
		return r.drop(v)
	}
	for i, word := range words {
		if i > 0 {
			words[i] = r.drop(word)
		} else if program, ok := word.(string); ok && strings.ContainsAny(program, " \n=") {
			words[i] = r.drop(word)
		}
	}
	return words
}

// drop learns the texts of a value and replaces them.
func (r *redactor) drop(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			v[name] = r.drop(value)
		}
		return v
	case []any:
		for i := range v {
			v[i] = r.drop(v[i])
		}
		return v
	case string:
		r.learn(v)
		return redacted
	case json.Number:
		return redacted
	}
	return v
}

// texts redacts every text of a document, and keeps its structure.
func (r *redactor) texts(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			v[name] = r.texts(value)
		}
	case []any:
		for i := range v {
			v[i] = r.texts(v[i])
		}
	case string:
		return r.text(v)
	}
	return v
}
