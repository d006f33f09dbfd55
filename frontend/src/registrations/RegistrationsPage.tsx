export function RegistrationsPage() { return null; }
