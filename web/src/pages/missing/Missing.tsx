import { Link } from "@tanstack/react-router";
import { EmptyState } from "@/ui";

export function Missing() {
  return (
    <EmptyState icon="why" title="There is no such page" isPage actions={<Link to="/runs">Go to the runs</Link>}>
      The address may have been cut short, or what it named may have been deleted.
    </EmptyState>
  );
}
