// Package credentialplugin asks programs on the node for credentials that open registries:
// the credential provider plugins of --image-credential-provider-config. A plugin is given
// an image's repository, and if it wants one a token of the pod's service account, and
// answers with logins and how long they may be kept.
package credentialplugin
