// Package credentialplugin runs the credential provider plugins of
// --image-credential-provider-config. A plugin gets an image's repository and, if configured, a
// token of the pod's service account, and returns registry credentials and their cache duration.
package credentialplugin
