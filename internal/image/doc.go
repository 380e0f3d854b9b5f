// Package image pulls the images of containers. It applies the pull policy, finds credentials,
// limits the rate and number of pulls, shares one pull among pods that need the same image,
// backs off after failures, and records events. It also garbage-collects unused images.
package image
