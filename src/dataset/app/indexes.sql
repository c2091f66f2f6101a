CREATE UNIQUE INDEX users_email ON users (email);
CREATE INDEX users_plan_created ON users (plan, created_at);
CREATE INDEX orders_user_created ON orders (user_id, created_at);
CREATE INDEX orders_status_created ON orders (status, created_at);
